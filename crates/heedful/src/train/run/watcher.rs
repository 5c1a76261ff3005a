//! What a run tells who watches it: a progress bar, a log, a page.

use crate::data::CorpusReport;
use crate::tasks::Task;
use crate::train::ValidationScore;
use crate::train::log::Record;

/// Sees what happens in a run, and may end it.
pub trait Watcher {
    /// Something happened.
    fn see(&mut self, event: &Event<'_>);

    /// Whether the run shall save and end. Asked after every step and between the stages of preparation.
    fn wants_end(&self) -> bool {
        false
    }
}

/// What happens in a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// So many pairs were read to learn the vocabulary from.
    LearningVocabulary {
        /// Pairs so far.
        pairs: u64,
    },
    /// So many pairs were turned into tokens.
    Encoding {
        /// Pairs so far.
        pairs: u64,
    },
    /// The training text was read.
    Corpus(&'a CorpusReport),
    /// All is ready.
    Ready(&'a Ready),
    /// An update was made.
    Step(&'a Pace),
    /// A line for the log: the mean of the last steps.
    Logged(&'a Record),
    /// The validation set was told, and translated.
    Validated {
        /// What was found.
        record: &'a Record,
        /// Whether it is the best so far.
        is_best: bool,
    },
    /// A checkpoint was handed to the writer.
    Saved {
        /// Its step.
        step: u64,
    },
    /// Something that the user should know but need not act on.
    Warning(&'a str),
}

/// What is about to be trained.
#[derive(Clone, Debug)]
pub struct Ready {
    /// What it is trained for.
    pub task: Task,
    /// Numbers in the model.
    pub parameters: usize,
    /// Tokens of the source and of the target vocabulary.
    pub vocabularies: [usize; 2],
    /// Pairs to train with.
    pub pairs: u64,
    /// Pairs to validate with.
    pub validation_pairs: usize,
    /// Updates that were made before.
    pub step: u64,
    /// Updates until the end, if they end it.
    pub steps: Option<u64>,
}

impl Ready {
    /// What the examples are called.
    pub fn unit(&self) -> &'static str {
        self.task.examples()
    }
}

/// How fast it goes.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Updates so far.
    pub step: u64,
    /// Mean loss of the last steps.
    pub loss: f64,
    /// Target tokens a second, over the last steps.
    pub tokens_per_second: f64,
    /// Seconds of training, over all sittings.
    pub seconds: f64,
    /// How far it is, in [0, 1], where that is known.
    pub progress: Option<f64>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Updates in all.
    pub step: u64,
    /// Why.
    pub ending: Ending,
    /// The best validation and its step.
    pub best: Option<(ValidationScore, u64)>,
    /// What the final model was made of.
    pub model: FinalModel,
    /// Seconds of training, over all sittings.
    pub seconds: f64,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As many steps as were asked for.
    AllSteps,
    /// As much time as was given.
    AllTime,
    /// No validation was better for too long.
    OutOfPatience,
    /// The watcher wanted it. It can be resumed.
    Interrupted,
}

/// What the model in the run's folder is.
#[derive(Clone, Debug, PartialEq)]
pub enum FinalModel {
    /// The weights of one step.
    Step(u64),
    /// The mean of the weights of several steps.
    MeanOf(Vec<u64>),
}
