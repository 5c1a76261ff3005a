//! Options for explanations.

use heedful_tensor::Precision;

use super::explanation::WeightForm;
use crate::decode::SearchOptions;
use crate::layers::{AttentionMask, AttentionRole, Pass};

/// How a text is explained.
#[derive(Clone, Debug, Default)]
pub struct ExplainOptions {
    /// Whether attention weights are included, and in which form.
    pub form: WeightForm,
    /// Whether the scores before the softmax are included.
    pub scores: RawScores,
    /// Attention masks. The search ignores them; probabilities and attention of its outputs are computed with
    /// them.
    pub masks: Vec<AttentionMask>,
    /// Search options. Tasks without a search use only `compute`.
    pub search: SearchOptions,
}

/// Whether an explanation contains the attention scores before the softmax.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RawScores {
    /// Leave them out.
    #[default]
    Omit,
    /// Include them, in the form of the weights. They count towards the limit on recorded values.
    Include,
}

impl ExplainOptions {
    /// Weights in the given form, without scores and masks, with the given search options.
    pub fn new(form: WeightForm, search: &SearchOptions) -> ExplainOptions {
        ExplainOptions { form, search: search.clone(), ..ExplainOptions::default() }
    }

    /// A pass that records what these options request; `compute` is the model's type, which the options may
    /// override.
    pub(super) fn pass(&self, compute: Precision) -> Pass {
        let pass = Pass::inference(self.search.compute.unwrap_or(compute)).with_masks(&self.masks);
        match (self.form, self.scores) {
            (WeightForm::None, _) => pass,
            (_, RawScores::Omit) => pass.recording(),
            (_, RawScores::Include) => pass.recording_scores(),
        }
    }

    /// Like [`ExplainOptions::pass`], but always records cross attention: a translator derives its alignment
    /// from it.
    pub(super) fn aligning_pass(&self, compute: Precision) -> Pass {
        let pass = match self.form {
            WeightForm::None => self.pass(compute).recording_role(AttentionRole::Cross),
            _ => self.pass(compute),
        };
        pass.without_heads(&self.search.without_heads)
    }
}
