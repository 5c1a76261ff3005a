//! Why a run cannot start, or ends with an error.

use std::path::PathBuf;

use heedful_tensor::collective::Failure;
use heedful_tensor::{OutOfMemory, cuda};

use crate::data::batch::BatchError;
use crate::data::encoded::EncodedError;
use crate::data::labels::LabelsError;
use crate::data::tokenizer::VocabularyError;
use crate::data::{CorpusError, TokenizerError};
use crate::store::durable::WriteError;
use crate::store::output::OutputError;
use crate::tasks::TaskError;
use crate::tasks::folder::FolderError;
use crate::train::checkpoint::CheckpointError;
use crate::train::log::LogError;
use crate::train::team::NotDivisible;
use crate::train::{StateError, TrainError};

/// Why a run cannot start, or ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The recipe names no folder for the run.
    #[error(
        "no folder for the run was named: add --out RUN, or set out in the section [output] of the recipe"
    )]
    NoFolder,
    /// The folder already holds a run, which a new one would overwrite.
    #[error("{folder} already holds a run of {step} steps: resume it (--resume {folder}), or choose another folder", folder = folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// The number of its steps.
        step: u64,
    },
    /// The folder has a file that the run would replace.
    #[error("{} would be overwritten: it is not of a run that can be resumed; choose another folder, or add --force to replace it", file.display())]
    Foreign {
        /// The file.
        file: PathBuf,
    },
    /// The batches of a step cannot be divided among the ranks.
    #[error(transparent)]
    NotDivisible(#[from] NotDivisible),
    /// The other ranks cannot be reached.
    #[error("the other ranks cannot be reached: {0}; resume the run from its newest checkpoint (--resume)")]
    Ranks(#[from] Failure),
    /// Nothing can be written into the folder.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// There is no card.
    #[error("cannot train on a card: {0}; --device cpu trains on the processor")]
    NoCard(cuda::Unavailable),
    /// The model with what its optimizer keeps does not fit on the card.
    #[error(
        "the model with its optimizer does not fit into the memory of the card ({0}): choose a smaller model, or --device cpu"
    )]
    ModelDoesNotFit(OutOfMemory),
    /// The model with what its optimizer keeps does not fit into memory.
    #[error(
        "a model of {parameters} parameters takes at least {bytes} of memory, and the machine has {memory}: choose smaller sizes"
    )]
    LargeModel {
        /// How many it has.
        parameters: u64,
        /// What it takes.
        bytes: String,
        /// What there is.
        memory: String,
    },
    /// What the gradient of a batch needs does not fit into memory.
    #[error(
        "a batch of {tokens} tokens takes at least {bytes} of memory, and the machine has {memory}: make training.batch_tokens \
         smaller"
    )]
    LargeBatch {
        /// Its size.
        tokens: usize,
        /// What it takes.
        bytes: String,
        /// What there is.
        memory: String,
    },
    /// What the run writes does not fit on the disk.
    #[error(
        "the run needs {needed} on the disk of {}, where {room} are free for it: a model of {model}, and checkpoints of {checkpoint} \
         each. Free some space, or name a folder on another disk (--out); with the fewest checkpoints (checkpoint.keep_last = 1, \
         checkpoint.keep_best = 0) it needs {least}",
        folder.display()
    )]
    SmallDisk {
        /// The folder of the run.
        folder: PathBuf,
        /// What the run takes when it takes most.
        needed: Box<str>,
        /// What is free, with what the run has there already.
        room: Box<str>,
        /// The size of its model.
        model: Box<str>,
        /// The size of a checkpoint.
        checkpoint: Box<str>,
        /// What the run takes when it keeps as few checkpoints as it can.
        least: Box<str>,
    },
    /// The folder holds no run to resume.
    #[error("{} is not the folder of a run, for it has no recipe.toml: start one with heedful train … --out {}", folder.display(), folder.display())]
    NotARun {
        /// The folder.
        folder: PathBuf,
    },
    /// Only one of two vocabularies is named.
    #[error(
        "only one of vocabulary.source_file and vocabulary.target_file is set: set both, or vocabulary.file for both sides"
    )]
    OneVocabulary,
    /// A run that has no checkpoint yet was begun with another model than the one that is there.
    #[error("{} has another model than the one that the run in {} was begun with: bring that one back, or start a new run", folder.display(), run.display())]
    OtherOriginal {
        /// The folder of the run.
        run: PathBuf,
        /// The folder of the model that it starts from.
        folder: PathBuf,
    },
    /// The run's folder is that of the model that it starts from.
    #[error("the run would replace the model in {} that it starts from: choose another folder (--out)", folder.display())]
    OntoOriginal {
        /// The folder.
        folder: PathBuf,
    },
    /// A pattern matches no parameter.
    #[error("training.freeze: no parameter is called `{pattern}`; names like it are {near}")]
    NothingFrozen {
        /// The pattern.
        pattern: String,
        /// The names that are most like it.
        near: String,
    },
    /// All parameters keep their values.
    #[error("training.freeze matches every parameter: leave some of them to train")]
    AllFrozen,
    /// The model or its validation set cannot be built.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The labels of a classifier cannot be read.
    #[error(transparent)]
    Labels(#[from] LabelsError),
    /// The checkpoint belongs to another model.
    #[error(
        "the checkpoint of step {step} does not fit the recipe: {source}. Undo the change of the recipe, or start a new run"
    )]
    OtherModel {
        /// The checkpoint's step.
        step: u64,
        /// What does not fit.
        source: StateError,
    },
    /// The checkpoint's position in the data cannot be read.
    #[error("the position in the data of the checkpoint of step {step} cannot be read: {reason}")]
    NoPosition {
        /// The checkpoint's step.
        step: u64,
        /// The cause.
        reason: String,
    },
    /// Training diverged; the last checkpoint is kept.
    #[error("{error}{}", kept.map_or(String::new(), |step| format!(" (the checkpoint of step {step} is kept)")))]
    Diverged {
        /// At which step, and why.
        error: TrainError,
        /// The last good checkpoint.
        kept: Option<u64>,
    },
    /// A batch does not fit on the card; all steps before it are kept.
    #[error("{error}{}", kept.map_or(String::new(), |step| format!(" (the checkpoint of step {step} is kept)")))]
    DoesNotFit {
        /// Which one, and what would fit.
        error: TrainError,
        /// The last checkpoint.
        kept: Option<u64>,
    },
    /// The training text cannot be read.
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
    /// A batch does not fit the model.
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

// Not as sources: the messages have them already, and whoever prints a chain of causes would say them twice.
impl From<OutOfMemory> for RunError {
    fn from(why: OutOfMemory) -> RunError {
        RunError::ModelDoesNotFit(why)
    }
}
