//! A model that was trained for another task.

use std::path::{Path, PathBuf};

use super::Task;
use crate::error::Cause;

/// A model that was trained for another task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{folder} holds {model}, not {expected}: use heedful {command} with it")]
pub(crate) struct WrongTask {
    folder: PathBuf,
    model: &'static str,
    expected: &'static str,
    command: &'static str,
}

impl Cause for WrongTask {}

impl WrongTask {
    /// The folder contains a model for the task `found` instead of `expected`.
    pub(crate) fn new(folder: &Path, found: Task, expected: Task) -> WrongTask {
        let folder = folder.to_owned();
        WrongTask { folder, model: found.model(), expected: expected.model(), command: found.command() }
    }
}
