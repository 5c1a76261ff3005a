//! Errors in recipes.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a recipe cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// The file cannot be read.
    #[error("cannot read the recipe {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file is not TOML.
    #[error("{location}: this is not TOML: {message}")]
    Syntax {
        /// Where.
        location: Location,
        /// The parser's message.
        message: String,
    },
    /// A section or key does not exist.
    #[error("{location}: {message}")]
    Unknown {
        /// Where.
        location: Location,
        /// The unknown name, and the nearest known one.
        message: String,
    },
    /// A value has the wrong type or is out of range.
    #[error("{location}: {key} {message}")]
    Value {
        /// Where.
        location: Location,
        /// The key, `training.dropout`.
        key: String,
        /// The expected value, and the actual one.
        message: String,
    },
    /// Values of unused keys.
    #[error("{}", .0.iter().map(|(location, why)| format!("{location}: {why}")).collect::<Vec<_>>().join("\n"))]
    Unused(Vec<(Location, String)>),
    /// The model cannot be built.
    #[error("the recipe's model cannot be built: {0}")]
    Model(Box<dyn std::error::Error + Send + Sync>),
    /// Values contradict each other.
    #[error("{0}")]
    Conflict(String),
}

impl crate::error::Cause for RecipeError {}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A line of a recipe file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// An argument of the command line.
    Argument(String),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File { path, line } => write!(f, "{}:{line}", path.display()),
            Location::Argument(argument) => f.write_str(argument),
        }
    }
}
