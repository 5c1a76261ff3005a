//! A model in one file, to be given to others: a zip archive of its folder.
//!
//! ```text
//! config.json, model.safetensors, …     the files of the model, which its seal names
//! MODEL_CARD.md, LICENSE, ORIGIN.md …   what is said of it
//! examples.txt                          texts to try it with, one a line
//! recipe.toml                           how long the texts were that it was trained with, and the names of its text files
//! ```
//!
//! Nothing else goes in, and nothing else comes out: a recipe loses its folders, and an archive with other files is not unpacked.
//! It need not be: whoever reads a model's folder reads the archive in its place ([`super::folder`]).

use std::fs;
use std::path::Path;

use serde_json::json;
use toml::de::{DeTable, DeValue};

use super::folder::{MODEL, MODEL_FILES, ModelFolder, Place};
use crate::store::durable;
use crate::store::formats::zip::{Archive, write};
use crate::{Error, Result};

/// What is said of a model.
pub const MODEL_CARD: &str = "MODEL_CARD.md";
/// Texts to try it with.
pub const EXAMPLES: &str = "examples.txt";
const RECIPE: &str = "recipe.toml";

/// Texts that lie beside a model and go along.
pub(crate) const DOCUMENTS: [&str; 6] =
    [MODEL_CARD, EXAMPLES, "ORIGIN.md", "LICENSE", "LICENSE.txt", "LICENSE.md"];

/// The archive of a model in a folder, which is checked first. `documents` are added, or replace those of the folder; all have a
/// name of `DOCUMENTS`.
pub fn pack(folder: &Path, documents: &[(&str, Vec<u8>)]) -> Result<Vec<u8>> {
    let (opened, place) = (ModelFolder::open(folder)?, Place::of(folder)?);
    opened.load()?;
    let names = opened.names();
    let mut members: Vec<(&str, Vec<u8>)> = Vec::new();
    for name in MODEL_FILES {
        if name == MODEL || names.iter().any(|sealed| sealed == name) {
            members.extend(place.read(name)?.map(|bytes| (name, bytes)));
        }
    }
    for name in DOCUMENTS {
        let given = documents.iter().find(|(given, _)| *given == name).map(|(_, text)| text.clone());
        members
            .extend(given.map_or_else(|| place.read(name), |text| Ok(Some(text)))?.map(|text| (name, text)));
    }
    if let Some(recipe) = place.read(RECIPE)? {
        members
            .extend(shortened(&String::from_utf8_lossy(&recipe)).map(|recipe| (RECIPE, recipe.into_bytes())));
    }
    let members: Vec<(&str, &[u8])> = members.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    let too_large = |why| Error::new(format!("the model cannot be packed: {why}. Quantize it first"));
    write::archive(&members).map_err(too_large)
}

/// Whether a file is the package of a model of ours, not that of another project.
pub fn is_ours(file: &Path) -> bool {
    matches!(Place::of(file), Ok(Place::Package(_)))
}

/// An archive that has the files of a model, and no others.
pub struct Package(Archive);

impl Package {
    /// Opens an archive and looks at the names of its files.
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

    /// Writes the model into a folder, which is created if need be, and opens it.
    pub fn unpack(&self, folder: &Path) -> Result<ModelFolder> {
        let Package(archive) = self;
        fs::create_dir_all(folder).map_err(|error| Error::new(format!("{}: {error}", folder.display())))?;
        // The weights last: they name the others.
        let (weights, others): (Vec<&str>, Vec<&str>) = archive.names().partition(|name| *name == MODEL);
        for name in others.into_iter().chain(weights) {
            let bytes = archive.read(name)?.expect("a member's own name");
            durable::write_bytes(&folder.join(name), &bytes)?;
        }
        Ok(ModelFolder::open(folder)?)
    }
}

/// What a recipe says of a model that others have: the lengths of its texts, and the names of their files without folders.
fn shortened(recipe: &str) -> Option<String> {
    let recipe = DeTable::parse(recipe).ok()?;
    let data = recipe.get_ref().get("data")?.get_ref().as_table()?;
    let mut text = "[data]\n".to_owned();
    for key in ["src", "tgt", "text", "label_text", "max_tokens", "block"] {
        if let Some(value) = data.get(key).and_then(|value| without_folders(value.get_ref())) {
            text += &format!("{key} = {value}\n");
        }
    }
    Some(text)
}

/// A value as TOML has it: paths as names. JSON's strings are TOML's too.
fn without_folders(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(path) => Some(json!(path.rsplit(['/', '\\']).next()?).to_string()),
        DeValue::Array(values) => {
            let values: Option<Vec<String>> =
                values.iter().map(|value| without_folders(value.get_ref())).collect();
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
    fn a_recipe_loses_its_folders_and_all_that_is_nobodys_business() {
        let recipe = "[data]\nsrc = [\"/private/secret/train.en\", \"b/more.en.xz\"]\ntgt = \"C:\\\\texts\\\\train.de\"\nmax_tokens = 128\n\
                      [output]\nout = \"/private/run\"\n";
        let short = shortened(recipe).expect("a recipe with text");
        assert!(!short.contains("private") && !short.contains("run") && !short.contains("texts"), "{short}");
        assert_eq!(
            short,
            "[data]\nsrc = [\"train.en\", \"more.en.xz\"]\ntgt = \"train.de\"\nmax_tokens = 128\n"
        );
        assert_eq!(shortened("not TOML at all ["), None);
        assert_eq!(shortened("[model]\nd_model = 8"), None);
    }

    #[test]
    fn an_archive_with_other_files_is_refused_and_nothing_is_written() {
        let place = tempfile::tempdir().expect("a folder");
        let (file, folder) = (place.path().join("model.zip"), place.path().join("model"));
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
