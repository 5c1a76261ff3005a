//! Why a model cannot be imported.

use std::io;

use crate::data::TokenizerError;
use crate::models::ConfigError;
use crate::store::formats::FormatError;
use crate::store::weights::WeightsMismatch;
use crate::tasks::folder::FolderError;

/// A model of another project cannot be imported.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// Its files cannot be read, or have something that heedful does not compute.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Its vocabulary cannot be read.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// Its sizes are not those of a model that can be built.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its tensors contradict its sizes.
    #[error("the weights of {file} do not fit its settings: {cause}. Copy or download it again")]
    Weights {
        /// The file or folder.
        file: String,
        /// What does not fit.
        cause: WeightsMismatch,
    },
    /// A weight is infinite or no number.
    #[error(
        "the weights of {file} are damaged: those that become `{name}` are not all numbers. Copy or download it again"
    )]
    NotFinite {
        /// The file or folder.
        file: String,
        /// The parameter.
        name: String,
    },
    /// The folder of the new model cannot be written.
    #[error("cannot write {file}: {error}")]
    Write {
        /// The file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// As before, for the model's own files.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl crate::error::Cause for ImportError {}
