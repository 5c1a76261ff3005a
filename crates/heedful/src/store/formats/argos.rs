//! Argos packages: a zip with one folder, in it `metadata.json`, a CTranslate2 folder `model/`, and the
//! subword model.

use std::path::Path;

use super::ctranslate2::Ctranslate2Folder;
use super::files::Files;
use super::zip::Archive;
use super::{FileBytes, FormatError, JsonObject, json_object};

const METADATA: &str = "metadata.json";
const SENTENCEPIECE: &str = "sentencepiece.model";
const BPE: &str = "bpe.model";
const README: &str = "README.md";

/// A package.
#[derive(Clone, Debug)]
pub struct ArgosPackage {
    /// `metadata.json`: languages and versions.
    pub metadata: JsonObject,
    /// The model.
    pub model: Ctranslate2Folder,
    /// The tokenizer model.
    pub(crate) segmentation: Segmentation,
    /// The README, with the package's origin and licence.
    pub(crate) readme: Option<String>,
}

/// The kind of tokenizer model in an Argos package.
#[derive(Clone, Debug)]
pub(crate) enum Segmentation {
    /// A SentencePiece model.
    SentencePiece(FileBytes),
    /// The merges of subword-nmt, which are applied after a word tokenizer.
    SubwordNmt,
}

impl ArgosPackage {
    /// Reads an `.argosmodel`. Nothing is unpacked to disk.
    pub fn open(path: &Path) -> Result<ArgosPackage, FormatError> {
        ArgosPackage::of_archive(Archive::open(path)?)
    }

    /// As [`ArgosPackage::open`], for an archive.
    pub fn of_archive(archive: Archive) -> Result<ArgosPackage, FormatError> {
        let folder = folder(&archive)?;
        let files = Files::Archive(archive.clone(), folder.clone());
        let metadata = json_object(&files.label(METADATA), &files.get(METADATA)?)?;
        let segmentation = match (files.find(SENTENCEPIECE)?, files.find(BPE)?) {
            (Some(bytes), _) => Segmentation::SentencePiece(bytes),
            (None, Some(_)) => Segmentation::SubwordNmt,
            (None, None) => {
                let remedy = "Download the package again from Argos";
                return Err(FormatError::missing(archive.file(), format!("file {SENTENCEPIECE}"), remedy));
            }
        };
        let readme = files.find(README)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let model = Ctranslate2Folder::open(&Files::Archive(archive, format!("{folder}model/")))?;
        Ok(ArgosPackage { metadata, model, segmentation, readme })
    }
}

/// Whether an archive contains a package.
pub(super) fn is_package(archive: &Archive) -> bool {
    folder(archive).is_ok()
}

/// The folder with `metadata.json`: the only folder, or the root of the archive.
fn folder(archive: &Archive) -> Result<String, FormatError> {
    let folders = archive.names().filter_map(|name| name.strip_suffix(METADATA));
    let folders: Vec<&str> = folders
        .filter(|folder| folder.is_empty() || (folder.ends_with('/') && folder.matches('/').count() == 1))
        .collect();
    match folders[..] {
        [folder] => Ok(folder.to_owned()),
        [] => {
            let remedy = "An Argos package has it in its only folder";
            Err(FormatError::missing(archive.file(), format!("file {METADATA}"), remedy))
        }
        _ => {
            let found = format!("{} packages in one file", folders.len());
            Err(FormatError::unsupported(archive.file(), found, "Put each into a separate file"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ctranslate2::tests::{Written, floats, written as weights};
    use super::super::zip::tests::written as zip;
    use super::*;

    fn members() -> Vec<(&'static str, Vec<u8>)> {
        let model = weights(6, &[Written("x", &[2], 0, floats(&[1.0, 2.0]))], &[]);
        vec![
            ("zh_en/metadata.json", br#"{"from_code": "zh"}"#.to_vec()),
            ("zh_en/README.md", b"CC-BY".to_vec()),
            ("zh_en/sentencepiece.model", b"pieces".to_vec()),
            ("zh_en/model/model.bin", model),
            ("zh_en/model/shared_vocabulary.json", br#"["<unk>"]"#.to_vec()),
        ]
    }

    fn opened(members: &[(&str, Vec<u8>)], method: u16) -> Result<ArgosPackage, FormatError> {
        let members: Vec<(&str, &[u8])> = members.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
        ArgosPackage::of_archive(Archive::new("zh_en.argosmodel", zip(&members, method).into())?)
    }

    #[test]
    fn a_package_is_read_with_all_its_parts() {
        for method in [0, 8] {
            let package = opened(&members(), method).expect("a package");
            assert_eq!(package.metadata["from_code"], "zh");
            assert_eq!(package.readme.as_deref(), Some("CC-BY"));
            assert_eq!(package.model.source_vocabulary, ["<unk>"]);
            assert_eq!(package.model.weights.tensors.get("x").expect("a variable").values(), [1.0, 2.0]);
            assert!(
                matches!(&package.segmentation, Segmentation::SentencePiece(bytes) if bytes[..] == *b"pieces")
            );
        }
    }

    #[test]
    fn errors_name_missing_files_and_reject_several_packages() {
        for (left_out, missing) in
            [(0, "metadata.json"), (2, "sentencepiece.model"), (3, "model.bin"), (4, "vocabulary")]
        {
            let mut members = members();
            members.remove(left_out);
            let message = opened(&members, 8).expect_err("a part").to_string();
            assert!(message.starts_with("zh_en.argosmodel") && message.contains(missing), "{message}");
        }
        let mut two = members();
        two.push(("en_zh/metadata.json", b"{}".to_vec()));
        assert!(opened(&two, 8).expect_err("two packages").to_string().contains("2 packages"));
        let mut slip = members();
        slip.push(("zh_en/../../x", b"".to_vec()));
        assert!(opened(&slip, 8).expect_err("a slip").to_string().contains("leads out"));
    }
}
