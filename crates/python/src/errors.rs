//! Converts the library's errors to Python exceptions with the same message.
//!
//! ```text
//! FileNotFoundError   a folder or a file of a model is missing
//! OSError             a file cannot be read
//! MemoryError         the device is out of memory
//! ValueError          an invalid model, text or option
//! RuntimeError        the model or the program is faulty
//! ```

use std::fmt::Display;

use heedful::decode::DecodeError;
use heedful::models::{BrokenModel, PlacementError};
use heedful::tasks::folder::FolderError;
use pyo3::PyErr;
use pyo3::exceptions::{PyFileNotFoundError, PyMemoryError, PyOSError, PyRuntimeError, PyValueError};

/// An error of the library that can be raised in Python.
pub(crate) trait ToException {
    /// The exception.
    fn exception(&self) -> PyErr;
}

/// A `ValueError`.
pub(crate) fn value_error(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl ToException for DecodeError {
    fn exception(&self) -> PyErr {
        match self {
            DecodeError::Broken(_) | DecodeError::Panicked => PyRuntimeError::new_err(self.to_string()),
            DecodeError::OutOfMemory(_) => PyMemoryError::new_err(self.to_string()),
            _ => value_error(self),
        }
    }
}

impl ToException for heedful::Error {
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
            _ if matches!(self.cause(), Some(PlacementError::OutOfMemory(_))) => {
                PyMemoryError::new_err(words)
            }
            _ if self.cause::<BrokenModel>().is_some() => PyRuntimeError::new_err(words),
            _ => value_error(words),
        }
    }
}
