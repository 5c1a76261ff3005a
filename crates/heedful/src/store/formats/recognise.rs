//! Detects the format of a path by its content.

use std::path::{Path, PathBuf};

use super::zip::{Archive, is_zip};
use super::{FileBytes, FormatError, argos, ctranslate2, huggingface, marian};

/// A format of another project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignFormat {
    /// An `.argosmodel`.
    Argos,
    /// A CTranslate2 folder.
    Ctranslate2,
    /// A Marian model: its `.npz` or `.bin`.
    Marian(PathBuf),
    /// A Hugging Face folder.
    HuggingFace,
}

/// Detects the format of a file or folder. A folder with one Marian model counts as that model.
pub fn recognise(path: &Path) -> Result<ForeignFormat, FormatError> {
    if !path.is_dir() {
        return format_of_file(path)?.ok_or_else(|| unknown(path));
    }
    let read = |error| FormatError::Read { file: path.display().to_string(), error };
    let has = |name: &str| path.join(name).exists();
    // Marian's `.bin` may be called `model.bin` too.
    if has(ctranslate2::WEIGHTS) && format_of_file(&path.join(ctranslate2::WEIGHTS))?.is_none() {
        return Ok(ForeignFormat::Ctranslate2);
    }
    let mut models = Vec::new();
    for entry in path.read_dir().map_err(read)? {
        let file = entry.map_err(read)?.path();
        let is_model = file.extension().is_some_and(|extension| extension == "npz" || extension == "bin");
        if is_model && matches!(format_of_file(&file), Ok(Some(ForeignFormat::Marian(_)))) {
            models.push(file);
        }
    }
    match &models[..] {
        [] if has(huggingface::CONFIG) => Ok(ForeignFormat::HuggingFace),
        [] => Err(unknown(path)),
        [model] => Ok(ForeignFormat::Marian(model.clone())),
        several => {
            let found = format!("{} Marian models", several.len());
            let remedy = "Give the path of the one to import";
            Err(FormatError::unsupported(path.display().to_string(), found, remedy))
        }
    }
}

fn format_of_file(path: &Path) -> Result<Option<ForeignFormat>, FormatError> {
    let bytes = FileBytes::open(path)?;
    if is_zip(&bytes) {
        let archive = Archive::new(&path.display().to_string(), bytes)?;
        if argos::is_package(&archive) {
            return Ok(Some(ForeignFormat::Argos));
        }
        let is_npz = archive.names().any(|name| name.ends_with(".npy"));
        return Ok(is_npz.then(|| ForeignFormat::Marian(path.to_owned())));
    }
    Ok(marian::is_binary(&bytes).then(|| ForeignFormat::Marian(path.to_owned())))
}

fn unknown(path: &Path) -> FormatError {
    let remedy = "Give a folder of CTranslate2 or Hugging Face, an .argosmodel, or Marian's .npz or .bin";
    FormatError::missing(path.display().to_string(), "model of a kind that heedful imports", remedy)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::zip::tests::written as zip;
    use super::*;

    #[test]
    fn the_format_is_detected_by_content() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a"), zip(&[("x/metadata.json", b"{}")], 0)).expect("a writable folder");
        assert_eq!(recognise(&path("a")).expect("a package"), ForeignFormat::Argos);
        fs::write(path("b"), zip(&[("x.npy", b"")], 0)).expect("a writable folder");
        assert_eq!(recognise(&path("b")).expect("an archive"), ForeignFormat::Marian(path("b")));
        assert!(
            recognise(folder.path()).expect_err("nothing").to_string().contains("kind that heedful imports")
        );
        fs::write(path("config.json"), "{}").expect("a writable folder");
        assert_eq!(recognise(folder.path()).expect("a folder"), ForeignFormat::HuggingFace);
        fs::write(path("model.bin"), 6_u32.to_le_bytes()).expect("a writable folder");
        assert_eq!(recognise(folder.path()).expect("a folder"), ForeignFormat::Ctranslate2);
        fs::write(path("model.bin"), marian::tests::written(&[])).expect("a writable folder");
        assert_eq!(recognise(folder.path()).expect("a folder"), ForeignFormat::Marian(path("model.bin")));
        fs::copy(path("model.bin"), path("second.bin")).expect("a writable folder");
        assert!(recognise(folder.path()).expect_err("two").to_string().contains("2 Marian models"));
        assert!(recognise(&path("absent")).is_err());
    }
}
