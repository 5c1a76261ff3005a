//! The validation set: in memory, as text and as tokens. What is asked of a model depends on its task.

mod classification;
mod text;
mod translation;

use super::RunError;
use super::page;
use crate::data::labels::Labels;
use crate::data::tokenizer::Tokenizers;
use crate::models::Model;
use crate::plot::{AttentionGrid, Table};
use crate::recipe::{PositionKind, Recipe};
use crate::tasks::Task;
use crate::train::Validation;
use crate::train::log::Sample;

use classification::LabelSet;
use text::TextSet;
use translation::TranslationSet;
pub(super) use translation::search_options;

/// Texts whose fate goes into the log.
const SAMPLES: usize = 4;

/// Held-out examples of a task.
pub(super) enum ValidationSet {
    Translation(TranslationSet),
    Labels(LabelSet),
    Text(TextSet),
}

/// What a validation found.
pub(super) struct Judgement {
    pub(super) told: Validation,
    /// What the task has besides.
    pub(super) values: Vec<(&'static str, f64)>,
    pub(super) samples: Vec<Sample>,
    pub(super) tables: Vec<Table>,
}

/// Examples that were read, and why some cannot be used.
#[derive(Default)]
struct Unusable {
    read: usize,
    empty: usize,
    too_long: usize,
}

impl ValidationSet {
    /// Reads the set; none if the recipe names none.
    pub(super) fn read(
        recipe: &Recipe,
        tokenizers: &Tokenizers,
        labels: Option<&Labels>,
    ) -> Result<Option<ValidationSet>, RunError> {
        Ok(match recipe.data.task {
            Task::Translate => TranslationSet::read(recipe, tokenizers)?.map(ValidationSet::Translation),
            Task::Classify => LabelSet::read(recipe, tokenizers, labels)?.map(ValidationSet::Labels),
            Task::Lm | Task::Mlm => TextSet::read(recipe, tokenizers)?.map(ValidationSet::Text),
        })
    }

    /// How many examples there are.
    pub(super) fn len(&self) -> usize {
        match self {
            ValidationSet::Translation(set) => set.len(),
            ValidationSet::Labels(set) => set.len(),
            ValidationSet::Text(set) => set.len(),
        }
    }

    /// How well `model` does its task.
    pub(super) fn judge(&self, model: &dyn Model, recipe: &Recipe) -> Result<Judgement, RunError> {
        match self {
            ValidationSet::Translation(set) => set.judge(model, recipe),
            ValidationSet::Labels(set) => set.judge(model, recipe),
            ValidationSet::Text(set) => set.judge(model, recipe),
        }
    }

    /// Where `model` looks in the first example.
    pub(super) fn attention(
        &self,
        model: &dyn Model,
        tokenizers: &Tokenizers,
        recipe: &Recipe,
    ) -> Result<Vec<AttentionGrid>, RunError> {
        match self {
            ValidationSet::Translation(set) => page::attention_of(model, tokenizers, set.first(), recipe),
            ValidationSet::Labels(set) => Ok(set.attention(model, recipe)),
            ValidationSet::Text(set) => set.attention(model, recipe),
        }
    }
}

impl Judgement {
    /// A number that the task has besides loss and accuracy.
    pub(super) fn value(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(known, _)| *known == name).map(|&(_, value)| value)
    }
}

impl From<Unusable> for RunError {
    fn from(Unusable { read, empty, too_long }: Unusable) -> RunError {
        RunError::NothingToValidate { read, empty, too_long }
    }
}

/// The most tokens of an example: learned positions end somewhere, and one of them is for `<bos>`.
fn longest(recipe: &Recipe) -> usize {
    match recipe.model.positions {
        PositionKind::Learned => recipe.model.max_positions.saturating_sub(1),
        PositionKind::Sinusoidal | PositionKind::None => usize::MAX,
    }
}
