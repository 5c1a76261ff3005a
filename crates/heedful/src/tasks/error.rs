//! Why a model cannot be opened, trained or validated.

use std::path::{Path, PathBuf};

use super::folder::FolderError;
use super::{ConfigError, Task};
use crate::data::batch::BatchError;
use crate::data::labels::LabelsError;
use crate::data::shortlist::ShortlistError;
use crate::data::{CorpusError, TokenizerError};
use crate::decode::DecodeError;
use crate::models::HeadError;

/// A model that was trained for another task.
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

/// Why a model cannot be opened for a task.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder holds no complete model.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The model was trained for another task.
    #[error(transparent)]
    Task(#[from] WrongTask),
    /// A vocabulary cannot be read.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The names of the labels cannot be read.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    /// The shortlist cannot be used.
    #[error(transparent)]
    Shortlist(#[from] ShortlistError),
    /// A head to prune does not exist.
    #[error(transparent)]
    Head(#[from] HeadError),
}

/// Why a model cannot be trained for its task or validated.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// No example of the validation set can be used.
    #[error(
        "the validation set has no usable example: of {read}, {empty} are empty on a side and {too_long} are too long for the model"
    )]
    NothingToValidate {
        /// Examples in the files.
        read: usize,
        /// Examples with an empty side.
        empty: usize,
        /// Examples that are longer than the learned positions.
        too_long: usize,
    },
    /// A model of one task cannot start from one of another.
    #[error("{} holds {}, from which {} cannot start: name {}, or train for another task (--task {found})", folder.display(), found.model(), wanted.model(), wanted.starts_from())]
    OtherStart {
        /// The folder.
        folder: PathBuf,
        /// The task of its model.
        found: Task,
        /// The task of the new model.
        wanted: Task,
    },
    /// A parameter is missing in the model that the new one starts from, or has another shape there.
    #[error("the model cannot start from {}: its `{name}` is missing or has another size than the new model's", folder.display())]
    OtherParameter {
        /// The folder.
        folder: PathBuf,
        /// The parameter.
        name: String,
    },
    /// The pretrained model cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The model cannot be built.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The validation text cannot be read.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// A label does not occur in the training text.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    /// A text does not fit the model.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A text cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}
