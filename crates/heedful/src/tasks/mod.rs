//! What a model is trained for.

mod config;
pub mod folder;

pub mod classify;
pub mod language;
pub mod masked;
pub mod translate;

pub use crate::models::ConfigError;
pub use config::ModelConfig;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a model is trained for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// From a sentence to its translation.
    #[default]
    Translate,
    /// From a text to its label.
    Classify,
    /// From the beginning of a text to the rest: a language model.
    Lm,
    /// From a text with gaps to what stood there: a masked language model.
    Mlm,
}

/// A model that was trained for something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{folder} holds {model}, not {wanted}: use heedful {command} with it")]
pub struct WrongTask {
    folder: PathBuf,
    model: &'static str,
    wanted: &'static str,
    command: &'static str,
}

impl WrongTask {
    /// The folder holds a model for `found`, where one for `wanted` was needed.
    pub fn new(folder: &Path, found: Task, wanted: Task) -> WrongTask {
        let folder = folder.to_owned();
        WrongTask { folder, model: found.model(), wanted: wanted.model(), command: found.command() }
    }
}

impl Task {
    /// The command that uses such a model.
    pub fn command(self) -> &'static str {
        match self {
            Task::Translate => "translate",
            Task::Classify => "classify",
            Task::Lm => "generate",
            Task::Mlm => "fill",
        }
    }

    /// What a model for this is called.
    pub fn model(self) -> &'static str {
        match self {
            Task::Translate => "a translator",
            Task::Classify => "a classifier",
            Task::Lm => "a language model",
            Task::Mlm => "a masked language model",
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Task::Translate => "translate",
            Task::Classify => "classify",
            Task::Lm => "lm",
            Task::Mlm => "mlm",
        })
    }
}
