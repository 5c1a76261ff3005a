//! A model on disk: a folder.
//!
//! ```text
//! config.json                its task, its family, its configuration, and the version of this format
//! model.safetensors          every parameter by name, f32
//! tokenizer.json             one vocabulary for both sides, or
//! source.tokenizer.json      one for each
//! target.tokenizer.json
//! labels.json                the names of a classifier's labels
//! ```
//!
//! The folder of a training run is a model's folder too: it holds the best model so far.

mod config;
mod error;

use std::fs;
use std::path::{Path, PathBuf};

pub use error::FolderError;
use heedful_tensor::Params;

use crate::data::labels::LABELS_FILE;
use crate::data::tokenizer::{JOINT_FILE, SOURCE_FILE, TARGET_FILE};
use crate::models::Model;
use crate::store::durable;
use crate::store::weights::file::{Checksum, Contents, Opened};
use crate::store::weights::{Metadata, Weights};
use crate::tasks::ModelConfig;

/// The version of the format, in `config.json` and in `model.safetensors`.
pub const FORMAT: u64 = 2;

const CONFIG: &str = "config.json";
const MODEL: &str = "model.safetensors";

/// A model's folder, with its configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFolder {
    /// Where it is.
    pub path: PathBuf,
    /// The model's configuration.
    pub config: ModelConfig,
    /// Its vocabularies.
    pub tokenizers: TokenizerFiles,
}

/// The files of a model's vocabularies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenizerFiles {
    /// One for both sides.
    Joint(PathBuf),
    /// One for each side.
    Separate {
        /// The vocabulary of the source.
        source: PathBuf,
        /// The vocabulary of the target.
        target: PathBuf,
    },
}

impl ModelFolder {
    /// Reads the configuration and finds the vocabularies.
    pub fn open(path: &Path) -> Result<ModelFolder, FolderError> {
        if !path.is_dir() {
            return Err(FolderError::NoFolder { path: path.to_owned() });
        }
        let config = config::read(&path.join(CONFIG))?;
        let tokenizers = TokenizerFiles::find(path)?;
        Ok(ModelFolder { path: path.to_owned(), config, tokenizers })
    }

    /// Writes a folder, creating it if needed: configuration and vocabularies, the latter copied to their names in the
    /// folder unless they are there already. [`ModelFolder::save`] adds the weights.
    pub fn create(
        path: &Path,
        config: ModelConfig,
        tokenizers: &TokenizerFiles,
    ) -> Result<ModelFolder, FolderError> {
        fs::create_dir_all(path).map_err(|cause| FolderError::write(path, cause))?;
        let tokenizers = tokenizers.copy_to(path)?;
        durable::write_bytes(&path.join(CONFIG), config::to_json(&config).as_bytes())?;
        Ok(ModelFolder { path: path.to_owned(), config, tokenizers })
    }

    /// Writes another folder for the same model: its configuration, its vocabularies, the names of its labels.
    pub fn copy_to(&self, path: &Path) -> Result<ModelFolder, FolderError> {
        let copy = ModelFolder::create(path, self.config.clone(), &self.tokenizers)?;
        let labels = self.path.join(LABELS_FILE);
        if labels.exists() {
            let bytes = fs::read(&labels).map_err(|cause| FolderError::read(&labels, cause))?;
            durable::write_bytes(&path.join(LABELS_FILE), &bytes)?;
        }
        Ok(copy)
    }

    /// Replaces the folder's weights atomically: a kill at any moment leaves the old ones or the new ones.
    pub fn save(&self, weights: &Weights) -> Result<(), FolderError> {
        let metadata = Metadata::from([
            ("format".to_owned(), FORMAT.to_string()),
            ("task".to_owned(), self.config.task().to_string()),
        ]);
        let contents = Contents { metadata, sets: vec![("", weights)], checksum: Checksum::Absent };
        Ok(durable::write(&self.path.join(MODEL), contents.bytes(), |out| contents.write(out))?)
    }

    /// Reads the weights and builds the model.
    pub fn load(&self) -> Result<Box<dyn Model>, FolderError> {
        let path = self.path.join(CONFIG);
        let model = self.config.build(0).map_err(|cause| FolderError::Unbuildable { path, cause })?;
        self.install(model.params())?;
        Ok(model)
    }

    /// Reads the weights into a model that was built from the configuration.
    pub fn install(&self, params: &Params) -> Result<(), FolderError> {
        self.weights()?.install(params).map_err(|mismatch| FolderError::WeightsMismatch {
            path: self.path.join(MODEL),
            config: self.path.join(CONFIG),
            mismatch,
        })
    }

    /// Reads the weights.
    pub fn weights(&self) -> Result<Weights, FolderError> {
        let path = self.path.join(MODEL);
        if !path.exists() {
            return Err(FolderError::NoModel { path });
        }
        let bytes = fs::read(&path).map_err(|cause| FolderError::read(&path, cause))?;
        let damaged = |damage| FolderError::Damaged { path: path.clone(), damage };
        let file = Opened::new(&bytes, Checksum::Absent).map_err(damaged)?;
        // Files of other programs have no such note; their names and shapes are checked instead.
        if let Some(found) = file.metadata("format").filter(|found| *found != FORMAT.to_string()) {
            return Err(FolderError::Version { path, found: found.to_owned() });
        }
        let weights = file.weights("").map_err(damaged)?;
        let weights = weights.ok_or_else(|| FolderError::NoWeights { path: path.clone() })?;
        match weights.first_not_finite() {
            Some(name) => Err(FolderError::NotFinite { name: name.to_owned(), path }),
            None => Ok(weights),
        }
    }
}

impl TokenizerFiles {
    /// The vocabularies in a folder.
    pub fn find(folder: &Path) -> Result<TokenizerFiles, FolderError> {
        let [joint, source, target] = [JOINT_FILE, SOURCE_FILE, TARGET_FILE].map(|name| folder.join(name));
        match (joint.exists(), source.exists(), target.exists()) {
            (true, false, false) => Ok(TokenizerFiles::Joint(joint)),
            (false, true, true) => Ok(TokenizerFiles::Separate { source, target }),
            (true, ..) => Err(FolderError::TwoTokenizers { folder: folder.to_owned() }),
            (false, true, false) => Err(FolderError::NoTokenizer { path: target }),
            (false, false, true) => Err(FolderError::NoTokenizer { path: source }),
            (false, false, false) => Err(FolderError::NoTokenizer { path: joint }),
        }
    }

    fn copy_to(&self, folder: &Path) -> Result<TokenizerFiles, FolderError> {
        let copy = |from: &Path, name: &str| {
            let to = folder.join(name);
            if from != to {
                let bytes = fs::read(from).map_err(|cause| FolderError::read(from, cause))?;
                durable::write_bytes(&to, &bytes)?;
            }
            Ok::<_, FolderError>(to)
        };
        Ok(match self {
            TokenizerFiles::Joint(file) => TokenizerFiles::Joint(copy(file, JOINT_FILE)?),
            TokenizerFiles::Separate { source, target } => TokenizerFiles::Separate {
                source: copy(source, SOURCE_FILE)?,
                target: copy(target, TARGET_FILE)?,
            },
        })
    }
}

#[cfg(test)]
mod tests;
