//! The name, the languages and the origin of a served model.
//!
//! Languages come from the caller, from the name (`en-de`), from the model itself if they were imported with
//! it, or from the recipe of the training run: files called `train.en` and `train.de` are English and German.
//! An unknown language is `und`, and such a model accepts any code of a client.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heedful::tasks::OpenOptions;
use heedful::tasks::folder::{ModelFolder, is_package, read_model_file};
use heedful::tensor::Precision;
use heedful::train::examples::examples;

use super::Engine;
use crate::languages;

/// An unknown language.
pub(crate) const UNKNOWN: &str = "und";

/// A model to serve.
#[derive(Clone, Debug)]
pub struct ModelSpec {
    /// The name that clients use.
    pub name: String,
    /// The code of the source language.
    pub source: String,
    /// The code of the target language.
    pub target: String,
    /// The source of the model.
    pub origin: Origin,
}

/// The source from which a model is loaded and reloaded.
#[derive(Clone)]
pub enum Origin {
    /// The folder of a model or of a training run, or the package of a model.
    Folder(PathBuf),
    /// A function that builds the model.
    Factory(Arc<dyn Fn() -> Result<Engine, String> + Send + Sync>),
}

impl ModelSpec {
    /// A folder, or a package without its `.zip`, under its own name, with its languages.
    pub fn folder(path: impl AsRef<Path>) -> ModelSpec {
        let path = path.as_ref();
        let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = if is_package(path) { name.file_stem() } else { name.file_name() };
        let name = name.map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into());
        ModelSpec::named(&name, path)
    }

    /// A folder under a name; a name like `en-de` gives the languages.
    pub fn named(name: &str, path: impl AsRef<Path>) -> ModelSpec {
        let path = path.as_ref();
        let (source, target) = languages_of_name(name)
            .or_else(|| languages_of_model(path))
            .or_else(|| languages_of_recipe(path))
            .unwrap_or_else(|| (UNKNOWN.to_owned(), UNKNOWN.to_owned()));
        ModelSpec { name: name.to_owned(), source, target, origin: Origin::Folder(path.to_owned()) }
    }

    /// `NAME=FOLDER`.
    pub fn parse(text: &str) -> Result<ModelSpec, String> {
        match text.split_once('=') {
            Some((name, folder)) if !name.is_empty() && !folder.is_empty() => {
                Ok(ModelSpec::named(name, folder))
            }
            _ => Err("give it as NAME=FOLDER, for instance en-de=runs/multi30k".to_owned()),
        }
    }

    pub(crate) fn supports_source(&self, code: &str) -> bool {
        self.source == UNKNOWN || self.source.eq_ignore_ascii_case(code)
    }

    pub(crate) fn supports_target(&self, code: &str) -> bool {
        self.target == UNKNOWN || self.target.eq_ignore_ascii_case(code)
    }
}

impl Origin {
    /// Loads the model; the error is a sentence.
    pub(super) fn load(&self, compute: Option<Precision>) -> Result<Engine, String> {
        match self {
            Origin::Folder(folder) => {
                Engine::open(folder, &OpenOptions::new().compute(compute)).map_err(|error| error.to_string())
            }
            Origin::Factory(build) => build(),
        }
    }

    /// The example inputs of its folder or package.
    pub(super) fn examples(&self) -> Vec<String> {
        match self {
            Origin::Folder(folder) => examples(folder),
            Origin::Factory(_) => Vec::new(),
        }
    }

    /// The family of the model, for display.
    pub(crate) fn family(&self) -> Option<String> {
        let Origin::Folder(folder) = self else { return None };
        ModelFolder::open(folder).ok().map(|opened| opened.config.family().to_string())
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Folder(folder) => write!(f, "Folder({})", folder.display()),
            Origin::Factory(_) => f.write_str("Factory"),
        }
    }
}

fn languages_of_name(name: &str) -> Option<(String, String)> {
    let (source, target) = name.split_once('-')?;
    let known = |code: &str| languages::name(code).is_some();
    (known(source) && known(target)).then(|| (source.to_owned(), target.to_owned()))
}

/// The languages that an import found in the model's files.
fn languages_of_model(folder: &Path) -> Option<(String, String)> {
    let languages = ModelFolder::open(folder).ok()?.languages?;
    Some((languages.source, languages.target))
}

/// The languages in the names of the training files, from the lines `src` and `tgt` of a recipe written by a
/// run.
fn languages_of_recipe(folder: &Path) -> Option<(String, String)> {
    let recipe = String::from_utf8(read_model_file(folder, "recipe.toml").ok()??).ok()?;
    let side = |key: &str| {
        let value = recipe.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='))?;
        let file = value.split(['"', '\'']).nth(1)?;
        file.rsplit(['.', '/']).find(|part| languages::name(part).is_some()).map(str::to_owned)
    };
    Some((side("src")?, side("tgt")?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn languages_come_from_the_name_or_from_the_recipe() {
        let folder = tempfile::tempdir().expect("a folder");
        let spec = ModelSpec::parse(&format!("en-de={}", folder.path().display())).expect("NAME=FOLDER");
        assert_eq!((spec.source.as_str(), spec.target.as_str()), ("en", "de"));
        let unknown = ModelSpec::named("best-model", folder.path());
        assert_eq!(unknown.source, UNKNOWN);
        assert!(unknown.supports_source("fr") && unknown.supports_target("xx"));
        let recipe = "[data]\nsrc = [\"corpora/train.zh.gz\", \"more.zh\"]\ntgt = \"corpora/train.en.gz\"\n";
        fs::write(folder.path().join("recipe.toml"), recipe).expect("room");
        let guessed = ModelSpec::named("best", folder.path());
        assert_eq!((guessed.source.as_str(), guessed.target.as_str()), ("zh", "en"));
        assert!(
            guessed.supports_source("zh") && guessed.supports_target("EN") && !guessed.supports_source("en")
        );
        assert!(ModelSpec::parse("folder").is_err());
    }
}
