//! What can be wrong with a model's folder.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::durable::WriteError;
use crate::store::weights::{WeightsFileError, WeightsMismatch};
use crate::tasks::ConfigError;

/// A folder that holds no model, or not a whole one.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Nothing there.
    #[error("{path} is no folder: give the folder of a model or of a training run")]
    NoFolder {
        /// The path.
        path: PathBuf,
    },
    /// A folder of something else.
    #[error("{path} is missing: give the folder of a model or of a training run")]
    NoConfig {
        /// The file.
        path: PathBuf,
    },
    /// A run that has not come far enough.
    #[error("{path} is missing: a training run writes it at its first validation or at its end")]
    NoModel {
        /// The file.
        path: PathBuf,
    },
    /// No vocabulary.
    #[error("{path} is missing: copy the vocabulary that the model was trained with into the folder")]
    NoTokenizer {
        /// The file.
        path: PathBuf,
    },
    /// Which one is it?
    #[error(
        "{folder} has both a tokenizer.json and one for a side alone: remove the one that the model was not trained with"
    )]
    TwoTokenizers {
        /// The folder.
        folder: PathBuf,
    },
    /// Not JSON, or a field that is missing, unknown or of another type.
    #[error("{path} is no configuration of a model: {cause}")]
    Config {
        /// The file.
        path: PathBuf,
        /// Where and why.
        cause: serde_json::Error,
    },
    /// Fields that do not go together.
    #[error("{path}: {cause}")]
    Unbuildable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: ConfigError,
    },
    /// Another version.
    #[error(
        "{path} has format {found}, this program reads format {}: use the version of heedful that wrote it",
        super::FORMAT
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: String,
    },
    /// Not a whole file of weights.
    #[error("the weights {path} cannot be used: {damage}; copy the file again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// In what way.
        damage: WeightsFileError,
    },
    /// A file of weights without any.
    #[error("{path} holds no weights: copy the file again")]
    NoWeights {
        /// The file.
        path: PathBuf,
    },
    /// A model that would say nothing but nonsense.
    #[error(
        "`{name}` in {path} has numbers that are infinite or none: the training run diverged, take an earlier one"
    )]
    NotFinite {
        /// The parameter.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// Weights of another model.
    #[error("{path} does not fit {config}: {mismatch}; both files must be of one model")]
    WeightsMismatch {
        /// The weights.
        path: PathBuf,
        /// The configuration.
        config: PathBuf,
        /// In what way.
        mismatch: WeightsMismatch,
    },
    /// A file that cannot be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A file that cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl FolderError {
    pub(super) fn read(path: &Path, cause: io::Error) -> FolderError {
        FolderError::Read { path: path.to_owned(), cause }
    }

    pub(super) fn write(path: &Path, cause: io::Error) -> FolderError {
        WriteError::Failed { path: path.to_owned(), cause }.into()
    }
}
