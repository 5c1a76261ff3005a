//! Why a model cannot be imported.

use std::io;

use crate::data::TokenizerError;
use crate::models::ConfigError;
use crate::store::formats::FormatError;
use crate::store::weights::WeightsMismatch;
use crate::tasks::folder::FolderError;

/// The error of an import.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// Its files cannot be read, or have an unsupported feature.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// Its vocabulary cannot be read.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// No model can be built from its configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Its tensors do not have the shapes that its configuration requires.
    #[error("the weights of {file} do not fit its settings: {cause}. Copy or download it again")]
    Weights {
        /// The file or folder.
        file: String,
        /// The mismatch.
        cause: WeightsMismatch,
    },
    /// A weight is infinite or NaN.
    #[error(
        "the weights of {file} are damaged: those of `{name}` include NaN or infinity. Copy or download it again"
    )]
    NotFinite {
        /// The file or folder.
        file: String,
        /// The parameter.
        name: String,
    },
    /// The folder of the imported model cannot be written.
    #[error("cannot write {file}: {error}")]
    Write {
        /// The file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// The model's files cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl crate::error::Cause for ImportError {}
