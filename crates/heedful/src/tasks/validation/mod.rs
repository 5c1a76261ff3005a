//! Held-out examples: how well a model does its task on text that it was not trained on.

mod held_out;

pub use held_out::{HeldOut, held_out};

use super::TaskError;
use crate::metrics::Measure;
use crate::plot::{AttentionGrid, Table};
use crate::recipe::{PositionKind, Recipe};

/// Examples whose outputs go into the log.
pub(crate) const SAMPLES: usize = 4;

/// Held-out examples of a task, with the model that they judge. The trainer changes the model's parameters in place, so a
/// set always judges the model as it is.
pub(crate) trait ValidationSet: Send {
    /// How many examples there are.
    fn len(&self) -> usize;

    /// How well the model does its task.
    fn judge(&self, recipe: &Recipe) -> Result<Judgement, TaskError>;

    /// The attention weights of the first example.
    fn attention(&self, recipe: &Recipe) -> Result<Vec<AttentionGrid>, TaskError>;
}

/// What a validation found.
pub(crate) struct Judgement {
    pub(crate) held_out: HeldOut,
    /// What the task measures besides.
    pub(crate) measures: Vec<(Measure, f64)>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) tables: Vec<Table>,
}

/// What the model made of one example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The input.
    pub source: String,
    /// What a person made of it; may be empty.
    pub reference: String,
    /// What the model made of it.
    pub output: String,
}

/// Examples that were read, and why some cannot be used.
#[derive(Default)]
pub(crate) struct Unusable {
    pub(crate) read: usize,
    pub(crate) empty: usize,
    pub(crate) too_long: usize,
}

impl Judgement {
    /// A number that the task measures besides loss and accuracy.
    pub(crate) fn value(&self, measure: Measure) -> Option<f64> {
        self.measures.iter().find(|(known, _)| *known == measure).map(|&(_, value)| value)
    }
}

impl From<Unusable> for TaskError {
    fn from(Unusable { read, empty, too_long }: Unusable) -> TaskError {
        TaskError::NothingToValidate { read, empty, too_long }
    }
}

/// The most tokens of an example: learned positions end somewhere, and one of them is for `<bos>`.
pub(crate) fn longest(recipe: &Recipe) -> usize {
    match recipe.model.positions {
        PositionKind::Learned => recipe.model.max_positions.saturating_sub(1),
        PositionKind::Sinusoidal | PositionKind::None => usize::MAX,
    }
}
