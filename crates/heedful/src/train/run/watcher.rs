//! The events of a run, for progress bars and logs.

use heedful_tensor::Device;

use crate::data::CorpusReport;
use crate::tasks::Task;
use crate::train::log::Record;
use crate::train::{Choice, TimePlan, ValidationScore};

/// Receives the events of a run and can stop it.
pub trait Watcher {
    /// Called for every event.
    fn observe(&mut self, event: &Event<'_>);

    /// Whether the run should save its state and end. Called after every step.
    fn should_stop(&self) -> bool {
        false
    }
}

/// An event of a run.
#[derive(Debug)]
pub enum Event<'a> {
    /// The automatically chosen device is not the GPU.
    NotOnGpu {
        /// The reason.
        why: &'a str,
    },
    /// The vocabulary is being learned.
    LearningVocabulary {
        /// Pairs read so far.
        pairs: u64,
    },
    /// Tokens were added to the vocabulary of the model that the run starts from.
    AddedTokens {
        /// Number of added tokens.
        added: usize,
        /// Number of tokens that already existed.
        known: usize,
    },
    /// The training text is being encoded.
    Encoding {
        /// Pairs read so far.
        pairs: u64,
    },
    /// The training text is encoded.
    Corpus(&'a CorpusReport),
    /// The duration of steps and validations is being measured, for a run with a time limit only.
    Measuring {
        /// Trial steps so far, which are discarded.
        steps: u32,
    },
    /// Size and training were chosen for the text, the time and the machine.
    Chosen(&'a [Choice]),
    /// The run is ready to train.
    Ready(&'a Ready),
    /// The plan of a run with a time limit only.
    Planned(&'a TimePlan),
    /// An update was made.
    Step(&'a Pace),
    /// A line of the log: means since the last line.
    Logged(&'a Record),
    /// A validation begins.
    Validating,
    /// The model was validated.
    Validated {
        /// The results.
        record: &'a Record,
        /// Whether the model is the best so far.
        is_best: bool,
    },
    /// A checkpoint is being written.
    Saved {
        /// Its step.
        step: u64,
    },
    /// A warning for the user.
    Warning(&'a str),
}

/// The run that is about to train.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The task.
    pub task: Task,
    /// The device.
    pub device: Device,
    /// Number of parameters.
    pub parameters: usize,
    /// Number of trainable parameters: all except frozen ones.
    pub trained: usize,
    /// Sizes of the source and of the target vocabulary.
    pub vocabularies: [usize; 2],
    /// Number of training examples.
    pub pairs: u64,
    /// Number of validation examples.
    pub validation_pairs: usize,
    /// Updates of earlier sessions.
    pub step: u64,
    /// Maximum number of updates.
    pub steps: Option<u64>,
}

impl Ready {
    /// The name of the examples: `pairs`, `texts`.
    pub fn unit(&self) -> &'static str {
        self.task.examples()
    }
}

/// The current speed and progress.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Updates so far.
    pub step: u64,
    /// Mean loss of the last steps.
    pub loss: f64,
    /// Target tokens per second, over the last steps.
    pub tokens_per_second: f64,
    /// Seconds of training, over all sessions.
    pub seconds: f64,
    /// Progress from 0 to 1, if the run has a limit.
    pub progress: Option<f64>,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Total number of updates.
    pub step: u64,
    /// Why the run ended.
    pub ending: Ending,
    /// The best validation and its step.
    pub best: Option<(ValidationScore, u64)>,
    /// The final model.
    pub model: FinalModel,
    /// Seconds of training, over all sessions.
    pub seconds: f64,
    /// Floating point operations of training, over all sessions: three times those of the forward passes
    /// ([`heedful_tensor::flops`]). Validation is not counted.
    pub flops: f64,
    /// The plan of a run with a time limit only.
    pub plan: Option<TimePlan>,
}

impl Outcome {
    /// The floating point operations as in table 2 of the paper: `2.3·10¹⁹`.
    pub fn flops_text(&self) -> String {
        flops_text(self.flops)
    }
}

/// Formats a number of operations in scientific notation.
pub(super) fn flops_text(flops: f64) -> String {
    if flops < 1.0 {
        return "0".to_owned();
    }
    let shown = format!("{flops:.1e}");
    let (digits, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    const SUPERSCRIPTS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let exponent =
        exponent.chars().filter_map(|digit| digit.to_digit(10)).map(|digit| SUPERSCRIPTS[digit as usize]);
    format!("{digits}·10{}", exponent.collect::<String>())
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The maximum number of steps is reached.
    AllSteps,
    /// The time limit is reached.
    AllTime,
    /// Early stopping: no validation improved for too long.
    OutOfPatience,
    /// The watcher stopped the run. It can be resumed.
    Interrupted,
}

/// The origin of the model in the folder of the run.
#[derive(Clone, Debug, PartialEq)]
pub enum FinalModel {
    /// The weights of one step.
    Step(u64),
    /// The average of the weights of several steps.
    MeanOf(Vec<u64>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_printed_in_scientific_notation() {
        for (flops, text) in [(2.3e19, "2.3·10¹⁹"), (0.0, "0"), (9.96e4, "1.0·10⁵"), (7.0, "7.0·10⁰")]
        {
            assert_eq!(flops_text(flops), text);
        }
    }
}
