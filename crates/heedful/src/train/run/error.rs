//! Why a run did not begin, or did not go on.

use std::path::PathBuf;

use crate::data::batch::BatchError;
use crate::data::encoded::EncodedError;
use crate::data::labels::LabelsError;
use crate::data::tokenizer::VocabularyError;
use crate::data::{CorpusError, TokenizerError};
use crate::store::durable::WriteError;
use crate::tasks::TaskError;
use crate::tasks::folder::FolderError;
use crate::train::checkpoint::CheckpointError;
use crate::train::log::LogError;
use crate::train::{StateError, TrainError};

/// Why a run did not begin, or did not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nobody said where to.
    #[error(
        "no folder for the run was named: add --out RUN, or set out in the section [output] of the recipe"
    )]
    NoFolder,
    /// A fresh start would lose what was trained there.
    #[error("{folder} holds a run of {step} steps already: go on with it (--resume {folder}), or choose another folder", folder = folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// How far that run has come.
        step: u64,
    },
    /// There is nothing to go on with.
    #[error("{} is not the folder of a run, for it has no recipe.toml: start one with heedful train … --out {}", folder.display(), folder.display())]
    NotARun {
        /// The folder.
        folder: PathBuf,
    },
    /// One of two vocabularies.
    #[error(
        "only one of vocabulary.source_file and vocabulary.target_file is set: set both, or vocabulary.file for both sides"
    )]
    OneVocabulary,
    /// The model, or what judges it.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The labels of a classifier.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    /// The checkpoint is of another model.
    #[error(
        "the checkpoint of step {step} does not fit the recipe: {source}. Undo the change of the recipe, or start a new run"
    )]
    Unlike {
        /// The checkpoint's step.
        step: u64,
        /// What does not fit.
        source: StateError,
    },
    /// The checkpoint's place in the data cannot be read.
    #[error("the checkpoint of step {step} says nothing of its place in the data: {reason}")]
    NoPosition {
        /// The checkpoint's step.
        step: u64,
        /// What was found.
        reason: String,
    },
    /// Training went astray; the checkpoint before is kept.
    #[error("{error}{}", kept.map_or(String::new(), |step| format!(" (the checkpoint of step {step} is kept)")))]
    Diverged {
        /// At which step, and why.
        error: TrainError,
        /// The last good checkpoint.
        kept: Option<u64>,
    },
    /// The training text is wrong.
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    /// The training text cannot be encoded.
    #[error(transparent)]
    Encoded(#[from] EncodedError),
    /// No vocabulary can be learned.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    /// A vocabulary cannot be read or written.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// A batch that the model cannot read.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// A checkpoint cannot be read or written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The model's folder cannot be written.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The logs cannot be written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}
