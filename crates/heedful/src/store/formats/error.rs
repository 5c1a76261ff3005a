use std::io;

/// Why a file of another project cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file is missing or cannot be read.
    #[error("cannot read {file}: {error}")]
    Read {
        /// The name of the file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// Its bytes contradict its format.
    #[error(
        "{file} is damaged at {place}: {problem}. Copy or download it again, and compare its size with the original's"
    )]
    Damaged {
        /// The name of the file.
        file: String,
        /// The byte, line or variable.
        place: String,
        /// The problem.
        problem: String,
    },
    /// The file is valid, but has an unsupported feature.
    #[error("{file} has {found}, which heedful does not support. {remedy}")]
    Unsupported {
        /// The name of the file.
        file: String,
        /// The unsupported feature, and where it is.
        found: String,
        /// The remedy.
        remedy: String,
    },
    /// A part of the model is missing.
    #[error("{file} has no {missing}. {remedy}")]
    Missing {
        /// The name of the file or folder.
        file: String,
        /// The missing part.
        missing: String,
        /// The remedy.
        remedy: String,
    },
}

impl crate::error::Cause for FormatError {}

impl FormatError {
    pub(crate) fn damaged(
        file: impl Into<String>,
        place: impl Into<String>,
        problem: impl Into<String>,
    ) -> FormatError {
        FormatError::Damaged { file: file.into(), place: place.into(), problem: problem.into() }
    }

    pub(crate) fn unsupported(
        file: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> FormatError {
        FormatError::Unsupported { file: file.into(), found: found.into(), remedy: remedy.into() }
    }

    pub(crate) fn missing(
        file: impl Into<String>,
        missing: impl Into<String>,
        remedy: impl Into<String>,
    ) -> FormatError {
        FormatError::Missing { file: file.into(), missing: missing.into(), remedy: remedy.into() }
    }
}
