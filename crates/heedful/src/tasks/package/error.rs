use std::io;
use std::path::{Path, PathBuf};

use crate::store::durable::WriteError;
use crate::store::formats::FormatError;
use crate::store::formats::zip::write::TooLarge;
use crate::tasks::OpenError;
use crate::tasks::folder::FolderError;

/// A model cannot be packed or unpacked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// The model's folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The model cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The archive cannot be read.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The archive has something else.
    #[error("{file} is not the package of a model: it has a file `{name}`. `heedful pack` makes packages")]
    Unknown {
        /// The archive.
        file: String,
        /// What it has.
        name: String,
    },
    /// The archive has no weights.
    #[error(
        "{file} is not the package of a model: it has no model.safetensors. `heedful pack` makes packages"
    )]
    NoModel {
        /// The archive.
        file: String,
    },
    /// The model is too large.
    #[error("the model cannot be packed: {0}. Quantize it first")]
    TooLarge(String),
    /// A file cannot be read, or a folder not be made.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl PackageError {
    pub(super) fn io(path: &Path, error: io::Error) -> PackageError {
        PackageError::Io { path: path.to_owned(), error }
    }
}

impl From<TooLarge> for PackageError {
    fn from(why: TooLarge) -> PackageError {
        PackageError::TooLarge(why.to_string())
    }
}
