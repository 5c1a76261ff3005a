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
use heedful::explain::ExplainError;
use heedful::tasks::OpenError;
use heedful::tasks::classify::ClassifyError;
use heedful::tasks::folder::FolderError;
use heedful::tasks::language::GenerateError;
use heedful::tasks::masked::FillError;
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

impl Exception for OpenError {
    fn exception(&self) -> PyErr {
        let words = self.to_string();
        match self {
            OpenError::Folder(
                FolderError::NoFolder { .. }
                | FolderError::NoConfig { .. }
                | FolderError::NoModel { .. }
                | FolderError::NoTokenizer { .. },
            ) => PyFileNotFoundError::new_err(words),
            OpenError::Folder(FolderError::Read { .. } | FolderError::Header { .. }) => {
                PyOSError::new_err(words)
            }
            _ => value(words),
        }
    }
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

impl Exception for ClassifyError {
    fn exception(&self) -> PyErr {
        match self {
            ClassifyError::Open(error) => error.exception(),
            ClassifyError::Broken(_) => PyRuntimeError::new_err(self.to_string()),
            ClassifyError::OutOfMemory(_) => PyMemoryError::new_err(self.to_string()),
            _ => value(self),
        }
    }
}

impl Exception for GenerateError {
    fn exception(&self) -> PyErr {
        match self {
            GenerateError::Open(error) => error.exception(),
            GenerateError::Decode(error) => error.exception(),
            GenerateError::LongPrompt { .. } => value(self),
        }
    }
}

impl Exception for FillError {
    fn exception(&self) -> PyErr {
        match self {
            FillError::Open(error) => error.exception(),
            FillError::Broken(_) => PyRuntimeError::new_err(self.to_string()),
            FillError::OutOfMemory(_) => PyMemoryError::new_err(self.to_string()),
            _ => value(self),
        }
    }
}

impl Exception for ExplainError {
    fn exception(&self) -> PyErr {
        match self {
            ExplainError::Open(error) => error.exception(),
            ExplainError::Decode(error) => error.exception(),
            ExplainError::Classify(error) => error.exception(),
            ExplainError::Generate(error) => error.exception(),
            ExplainError::Fill(error) => error.exception(),
        }
    }
}
