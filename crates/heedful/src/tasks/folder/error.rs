//! Why a model's folder cannot be used.

use std::io;
use std::path::{Path, PathBuf};

use crate::store::durable::WriteError;
use crate::store::weights::{WeightsFileError, WeightsMismatch};
use crate::tasks::ConfigError;

/// Why a model's folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The path is not a folder.
    #[error("{path} is not a folder: give the folder of a model or of a training run")]
    NoFolder {
        /// The path.
        path: PathBuf,
    },
    /// The folder has no `config.json`.
    #[error("{path} is missing: give the folder of a model or of a training run")]
    NoConfig {
        /// The file.
        path: PathBuf,
    },
    /// The folder has no weights: the training run has not saved a model yet.
    #[error("{path} is missing: a training run writes it at its first validation or at its end")]
    NoModel {
        /// The file.
        path: PathBuf,
    },
    /// The folder has no vocabulary.
    #[error("{path} is missing: copy the vocabulary that the model was trained with into the folder")]
    NoTokenizer {
        /// The file.
        path: PathBuf,
    },
    /// The folder has both a joint vocabulary and one for a single side.
    #[error(
        "{folder} has both a tokenizer.json and one for a side alone: remove the one that the model was not trained with"
    )]
    TwoTokenizers {
        /// The folder.
        folder: PathBuf,
    },
    /// `config.json` is not JSON, or a field is missing, unknown or of another type.
    #[error("{path} is not the configuration of a model: {cause}")]
    Config {
        /// The file.
        path: PathBuf,
        /// Where and why.
        cause: serde_json::Error,
    },
    /// The configuration is inconsistent: no model can be built from it.
    #[error("{path}: {cause}")]
    Unbuildable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: ConfigError,
    },
    /// The file has another version of the format.
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
    /// The file of weights is damaged.
    #[error("the weights {path} cannot be used: {damage}; copy the file again")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        damage: WeightsFileError,
    },
    /// The file has no weights.
    #[error("{path} holds no weights: copy the file again")]
    NoWeights {
        /// The file.
        path: PathBuf,
    },
    /// A parameter has values that are infinite or NaN.
    #[error(
        "`{name}` in {path} has values that are infinite or NaN: the training run diverged, use an earlier model"
    )]
    NotFinite {
        /// The parameter.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// The weights do not fit the configuration.
    #[error("{path} does not fit {config}: {mismatch}; both files must belong to the same model")]
    WeightsMismatch {
        /// The weights.
        path: PathBuf,
        /// The configuration.
        config: PathBuf,
        /// The damage.
        mismatch: WeightsMismatch,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A file cannot be written.
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
