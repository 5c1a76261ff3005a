//! Why a model cannot be opened, trained or judged.

use std::path::{Path, PathBuf};

use super::folder::FolderError;
use super::{ConfigError, Task};
use crate::data::batch::BatchError;
use crate::data::labels::LabelsError;
use crate::data::{CorpusError, TokenizerError};
use crate::decode::DecodeError;
use crate::models::transformer::HeadError;

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

/// A folder whose model cannot be opened for a task.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The model.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A model of another kind.
    #[error(transparent)]
    Task(#[from] WrongTask),
    /// Its vocabularies.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The names of its labels.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    /// A head that was to be left out.
    #[error(transparent)]
    Head(#[from] HeadError),
}

/// Why a model cannot be trained for its task or judged at it.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// No example of the validation set can be used.
    #[error(
        "the validation set has no pair that can be used: {read} were read, {empty} of them empty on a side, {too_long} too long for the model"
    )]
    NothingToValidate {
        /// Examples in the files.
        read: usize,
        /// Examples with an empty side.
        empty: usize,
        /// Examples that are longer than the learned positions.
        too_long: usize,
    },
    /// What a model starts from does not fit it.
    #[error("{} cannot be started from: its `{name}` is missing or of another size than the classifier's; train with its vocabulary and its sizes", folder.display())]
    OtherEncoder {
        /// The folder.
        folder: PathBuf,
        /// The parameter.
        name: String,
    },
    /// What a model starts from cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The model cannot be built.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The validation text is wrong.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// A label that training has not seen.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    /// A text that the model cannot read.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A text that the model cannot decode.
    #[error(transparent)]
    Decode(#[from] DecodeError),
}
