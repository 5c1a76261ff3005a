//! A model in one file, for distribution: a zip archive of its folder.
//!
//! ```text
//! config.json, model.safetensors, …     the files of the model, listed in its seal
//! MODEL_CARD.md, LICENSE, ORIGIN.md …   documentation
//! examples.txt                          example inputs, one per line
//! recipe.toml                           maximum text length in training, and the names of the training files
//! ```
//!
//! Packages contain nothing else: paths in the recipe are reduced to file names, and an archive with other
//! files is rejected. Unpacking is optional: all code that opens the folder of a model also opens a package
//! ([`super::folder`]).

use std::fs;
use std::path::Path;

use serde_json::json;
use toml::de::{DeTable, DeValue};

use super::folder::{MODEL, MODEL_FILES, ModelFolder, ModelStorage};
use crate::store::durable;
use crate::store::formats::zip::{Archive, write};
use crate::{Error, Result};

/// The model card.
pub const MODEL_CARD: &str = "MODEL_CARD.md";
/// Example inputs, one per line.
pub const EXAMPLES: &str = "examples.txt";
const RECIPE: &str = "recipe.toml";

/// Documents in the folder of a model that are packed with it.
pub(crate) const DOCUMENTS: [&str; 6] =
    [MODEL_CARD, EXAMPLES, "ORIGIN.md", "LICENSE", "LICENSE.txt", "LICENSE.md"];

/// Checks the model in a folder and packs it into an archive. `documents` are added to those of the folder or
/// replace them; their names must be in `DOCUMENTS`.
pub fn pack(folder: &Path, documents: &[(&str, Vec<u8>)]) -> Result<Vec<u8>> {
    let (opened, storage) = (ModelFolder::open(folder)?, ModelStorage::of(folder)?);
    opened.load()?;
    let names = opened.names();
    let mut members: Vec<(&str, Vec<u8>)> = Vec::new();
    for name in MODEL_FILES {
        if name == MODEL || names.iter().any(|sealed| sealed == name) {
            members.extend(storage.read(name)?.map(|bytes| (name, bytes)));
        }
    }
    for name in DOCUMENTS {
        let given = documents.iter().find(|(given, _)| *given == name).map(|(_, text)| text.clone());
        members.extend(
            given.map_or_else(|| storage.read(name), |text| Ok(Some(text)))?.map(|text| (name, text)),
        );
    }
    if let Some(recipe) = storage.read(RECIPE)? {
        members.extend(
            for_distribution(&String::from_utf8_lossy(&recipe)).map(|recipe| (RECIPE, recipe.into_bytes())),
        );
    }
    let members: Vec<(&str, &[u8])> = members.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    let too_large = |why| Error::new(format!("the model cannot be packed: {why}. Quantize it first"));
    write::archive(&members).map_err(too_large)
}

/// Whether a file is a heedful package, as opposed to an archive of another project.
pub fn is_heedful_package(file: &Path) -> bool {
    matches!(ModelStorage::of(file), Ok(ModelStorage::Package(_)))
}

/// An archive with the files of a model and no others.
pub struct Package(Archive);

impl Package {
    /// Opens an archive and checks the names of its files.
    pub fn open(file: &Path) -> Result<Package> {
        let archive = Archive::open(file)?;
        let is_known =
            |name: &&str| MODEL_FILES.contains(name) || DOCUMENTS.contains(name) || *name == RECIPE;
        if let Some(unknown) = archive.names().find(|name| !is_known(name)) {
            return Err(Error::new(format!(
                "{} is not the package of a model: it has a file `{unknown}`. `heedful pack` makes packages",
                archive.file()
            )));
        }
        if !archive.has(MODEL) {
            return Err(Error::new(format!(
                "{} is not the package of a model: it has no model.safetensors. `heedful pack` makes packages",
                archive.file()
            )));
        }
        Ok(Package(archive))
    }

    /// Writes the model into a folder, creating it if needed, and opens it.
    pub fn unpack(&self, folder: &Path) -> Result<ModelFolder> {
        let Package(archive) = self;
        fs::create_dir_all(folder).map_err(|error| Error::new(format!("{}: {error}", folder.display())))?;
        // The weights last: their seal lists the other files.
        let (weights, others): (Vec<&str>, Vec<&str>) = archive.names().partition(|name| *name == MODEL);
        for name in others.into_iter().chain(weights) {
            let bytes = archive.read(name)?.expect("a member's own name");
            durable::write_bytes(&folder.join(name), &bytes)?;
        }
        Ok(ModelFolder::open(folder)?)
    }
}

/// The part of a recipe that is distributed with a model: text lengths, and the names of the training files
/// without folders.
fn for_distribution(recipe: &str) -> Option<String> {
    let recipe = DeTable::parse(recipe).ok()?;
    let data = recipe.get_ref().get("data")?.get_ref().as_table()?;
    let mut text = "[data]\n".to_owned();
    for key in ["src", "tgt", "text", "label_text", "max_tokens", "block"] {
        if let Some(value) = data.get(key).and_then(|value| file_names_only(value.get_ref())) {
            text += &format!("{key} = {value}\n");
        }
    }
    Some(text)
}

/// A value in TOML syntax, with paths reduced to file names. JSON strings are valid TOML.
fn file_names_only(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(path) => Some(json!(path.rsplit(['/', '\\']).next()?).to_string()),
        DeValue::Array(values) => {
            let values: Option<Vec<String>> =
                values.iter().map(|value| file_names_only(value.get_ref())).collect();
            Some(format!("[{}]", values?.join(", ")))
        }
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_recipe_has_no_folders_and_no_private_keys() {
        let recipe = "[data]\nsrc = [\"/private/secret/train.en\", \"b/more.en.xz\"]\ntgt = \"C:\\\\texts\\\\train.de\"\nmax_tokens = 128\n\
                      [output]\nout = \"/private/run\"\n";
        let packed = for_distribution(recipe).expect("a recipe with text");
        assert!(
            !packed.contains("private") && !packed.contains("run") && !packed.contains("texts"),
            "{packed}"
        );
        assert_eq!(
            packed,
            "[data]\nsrc = [\"train.en\", \"more.en.xz\"]\ntgt = \"train.de\"\nmax_tokens = 128\n"
        );
        assert_eq!(for_distribution("not TOML at all ["), None);
        assert_eq!(for_distribution("[model]\nd_model = 8"), None);
    }

    #[test]
    fn an_archive_with_other_files_is_rejected_and_nothing_is_written() {
        let temporary = tempfile::tempdir().expect("a folder");
        let (file, folder) = (temporary.path().join("model.zip"), temporary.path().join("model"));
        for (members, expected) in [
            (vec![("../model.safetensors", &b"x"[..])], "model.safetensors"),
            (vec![(MODEL, b"x"), ("run.sh", b"rm -rf")], "run.sh"),
            (vec![("config.json", b"{}")], "no model"),
        ] {
            fs::write(&file, write::archive(&members).expect("a small archive")).expect("room on the disk");
            let unpacked = Package::open(&file).and_then(|package| package.unpack(&folder));
            let error = unpacked.expect_err("not a package").to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!folder.exists());
        }
    }
}
