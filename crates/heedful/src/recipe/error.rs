//! What can be wrong with a recipe.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// A recipe that cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum RecipeError {
    /// No such file, or not text.
    #[error("cannot read the recipe {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Not TOML.
    #[error("{place}: this is not TOML: {message}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the parser says.
        message: String,
    },
    /// A section or key that does not exist.
    #[error("{place}: {message}")]
    Unknown {
        /// Where.
        place: Place,
        /// What was written, and what was probably meant.
        message: String,
    },
    /// A value of the wrong type or out of its range.
    #[error("{place}: {key} {message}")]
    Value {
        /// Where.
        place: Place,
        /// The key, `training.dropout`.
        key: String,
        /// What it must be, and what it is.
        message: String,
    },
    /// A model that cannot be built.
    #[error("the recipe's model cannot be built: {0}")]
    Model(Box<dyn std::error::Error + Send + Sync>),
    /// Values that do not go together.
    #[error("{0}")]
    Conflict(String),
}

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a recipe.
    File {
        /// The file.
        path: PathBuf,
        /// Its line, the first being 1.
        line: usize,
    },
    /// On the command line.
    Argument(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { path, line } => write!(f, "{}:{line}", path.display()),
            Place::Argument(argument) => f.write_str(argument),
        }
    }
}
