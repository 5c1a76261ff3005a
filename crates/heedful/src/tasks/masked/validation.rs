//! Held-out text of a masked language model. Only masked tokens are predicted, so the text as a whole has no
//! probability.

use std::sync::Arc;

use super::MaskedModel;
use crate::Result;
use crate::plot::AttentionGrid;
use crate::recipe::Recipe;

use crate::tasks::plain_text::TextSet;
use crate::tasks::validation::{ValidationResult, ValidationSet};

/// Held-out text, and the model.
pub(super) struct MaskedSet {
    pub(super) texts: TextSet,
    pub(super) model: Arc<MaskedModel>,
}

impl ValidationSet for MaskedSet {
    fn len(&self) -> usize {
        self.texts.len()
    }

    fn validate(&self, recipe: &Recipe) -> Result<ValidationResult> {
        let held_out = self.texts.held_out(&*self.model, recipe)?;
        Ok(ValidationResult { held_out, measures: Vec::new(), samples: Vec::new(), tables: Vec::new() })
    }

    fn attention(&self, recipe: &Recipe) -> Result<Vec<AttentionGrid>> {
        self.texts.attention(&*self.model, recipe)
    }
}
