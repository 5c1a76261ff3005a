//! Why a model cannot be exported.

use std::io;

use crate::data::TokenizerError;
use crate::store::durable::WriteError;
use crate::tasks::OpenError;
use crate::tasks::folder::FolderError;

/// A model cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Its folder cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It has something that the other project does not compute, or has no place for.
    #[error("{model} cannot be exported as {format}, which does not have: {}. {remedy}", reasons.join("; "))]
    Inexpressible {
        /// The model's folder.
        model: String,
        /// The other project's kind of model.
        format: &'static str,
        /// What it has.
        reasons: Vec<String>,
        /// What to do.
        remedy: String,
    },
    /// The new folder cannot be made, or has a file that cannot be removed.
    #[error("cannot write {file}: {error}")]
    Folder {
        /// The folder or the file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl From<FolderError> for ExportError {
    fn from(error: FolderError) -> ExportError {
        OpenError::from(error).into()
    }
}

impl From<TokenizerError> for ExportError {
    fn from(error: TokenizerError) -> ExportError {
        OpenError::from(error).into()
    }
}
