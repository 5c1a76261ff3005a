//! Validation: evaluation of a model on held-out text.

mod held_out;

pub use held_out::HeldOut;
pub use held_out::held_out;

use crate::metrics::Measure;
use crate::plot::{AttentionGrid, Table};
use crate::recipe::{PositionKind, Recipe};
use crate::{Error, Result};

/// Number of examples whose outputs are logged.
pub(crate) const SAMPLES: usize = 4;

/// Held-out examples of a task, with the model to validate. The trainer updates the parameters in place, so a
/// validation always measures the current ones.
pub(crate) trait ValidationSet: Send {
    /// The number of examples.
    fn len(&self) -> usize;

    /// Validates the model.
    fn validate(&self, recipe: &Recipe) -> Result<ValidationResult>;

    /// The attention weights of every layer and head in the first example.
    fn attention(&self, recipe: &Recipe) -> Result<Vec<AttentionGrid>>;
}

/// The result of a validation.
pub(crate) struct ValidationResult {
    pub held_out: HeldOut,
    /// The metrics of the task.
    pub(crate) measures: Vec<(Measure, f64)>,
    pub samples: Vec<Sample>,
    pub(crate) tables: Vec<Table>,
}

/// The model's output for one example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The input.
    pub source: String,
    /// The reference; may be empty.
    pub reference: String,
    /// The model's output.
    pub output: String,
}

/// The number of examples read, and the numbers of unusable ones by reason.
#[derive(Default)]
pub(crate) struct Unusable {
    pub read: usize,
    pub(crate) empty: usize,
    pub(crate) too_long: usize,
}

impl ValidationResult {
    /// One of the metrics of the task.
    pub(crate) fn value(&self, measure: Measure) -> Option<f64> {
        self.measures.iter().find(|(known, _)| *known == measure).map(|&(_, value)| value)
    }
}

impl From<Unusable> for Error {
    fn from(Unusable { read, empty, too_long }: Unusable) -> Error {
        Error::new(format!(
            "the validation set has no usable example: of {read}, {empty} are empty on a side and {too_long} are too long for \
             the model"
        ))
    }
}

/// Maximum number of tokens of an example: the number of learned positions minus those for added special
/// tokens.
pub(crate) fn longest(recipe: &Recipe) -> usize {
    match recipe.model.positions {
        PositionKind::Learned => {
            let added = if recipe.model.surround_text { 2 } else { 1 };
            recipe.model.max_positions.saturating_sub(added)
        }
        _ => usize::MAX,
    }
}
