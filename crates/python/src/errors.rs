//! The library's errors as Python's exceptions, with the same words.
//!
//! ```text
//! FileNotFoundError   a folder or a file of a model is missing
//! OSError             it cannot be read
//! MemoryError         the device has no memory for it
//! ValueError          what was given cannot be used: a model, a text, an option
//! RuntimeError        the model or the program is broken
//! ```

use std::fmt::Display;

use heedful::decode::DecodeError;
use heedful::models::{BrokenModel, PlaceError};
use heedful::tasks::folder::FolderError;
use pyo3::PyErr;
use pyo3::exceptions::{PyFileNotFoundError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError};

/// An error of the library that becomes an exception.
pub(crate) trait Exception {
    /// The exception.
    fn exception(&self) -> PyErr;
}

/// What was given cannot be used.
pub(crate) fn value(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl Exception for DecodeError {
    fn exception(&self) -> PyErr {
        match self {
            DecodeError::Broken(_) | DecodeError::Panicked => PyRuntimeError::new_err(self.to_string()),
            DecodeError::OutOfMemory(_) => PyMemoryError::new_err(self.to_string()),
            _ => value(self),
        }
    }
}

impl Exception for heedful::Error {
    fn exception(&self) -> PyErr {
        if let Some(error) = self.cause::<DecodeError>() {
            return error.exception();
        }
        let words = self.to_string();
        match self.cause::<FolderError>() {
            Some(
                FolderError::NoFolder { .. }
                | FolderError::NoConfig { .. }
                | FolderError::NoModel { .. }
                | FolderError::NoTokenizer { .. },
            ) => PyFileNotFoundError::new_err(words),
            Some(FolderError::Read { .. } | FolderError::Header { .. }) => PyOSError::new_err(words),
            _ if matches!(self.cause(), Some(PlaceError::OutOfMemory(_))) => PyMemoryError::new_err(words),
            _ if self.cause::<BrokenModel>().is_some() => PyRuntimeError::new_err(words),
            _ => value(words),
        }
    }
}
