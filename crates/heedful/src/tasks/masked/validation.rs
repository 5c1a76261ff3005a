//! Held-out text of a masked language model. It predicts some tokens only, so the text as a whole has no probability.

use std::sync::Arc;

use super::MaskedModel;
use crate::plot::AttentionGrid;
use crate::recipe::Recipe;
use crate::tasks::TaskError;
use crate::tasks::plain_text::TextSet;
use crate::tasks::validation::{Judgement, ValidationSet};

/// Held-out text with the model that it judges.
pub(super) struct MaskedSet {
    pub(super) texts: TextSet,
    pub(super) model: Arc<MaskedModel>,
}

impl ValidationSet for MaskedSet {
    fn len(&self) -> usize {
        self.texts.len()
    }

    fn judge(&self, recipe: &Recipe) -> Result<Judgement, TaskError> {
        let held_out = self.texts.held_out(&*self.model, recipe)?;
        Ok(Judgement { held_out, measures: Vec::new(), samples: Vec::new(), tables: Vec::new() })
    }

    fn attention(&self, recipe: &Recipe) -> Result<Vec<AttentionGrid>, TaskError> {
        self.texts.attention(&*self.model, recipe)
    }
}
