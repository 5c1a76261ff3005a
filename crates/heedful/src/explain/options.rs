//! How texts are explained, and why one cannot be.

use heedful_tensor::Precision;

use super::explanation::WeightForm;
use crate::decode::SearchOptions;
use crate::layers::{AttentionMask, AttentionRole, Pass};

/// How a text is explained.
#[derive(Clone, Debug, Default)]
pub struct ExplainOptions {
    /// Whether and how attention weights are held.
    pub form: WeightForm,
    /// Whether their scores are held too.
    pub scores: ScoresKept,
    /// Masks under which the model reads the text. Outputs are searched without them; their probabilities and their
    /// attention are those under the masks.
    pub masks: Vec<AttentionMask>,
    /// How outputs are searched; of all tasks the type that is computed in.
    pub search: SearchOptions,
}

/// Whether an explanation holds the scores that the weights are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoresKept {
    /// No.
    #[default]
    No,
    /// Yes, in the form of the weights. They count towards the most numbers that are recorded.
    Yes,
}

impl ExplainOptions {
    /// Weights in this form, with a search of its own, without scores and masks.
    pub fn new(form: WeightForm, search: &SearchOptions) -> ExplainOptions {
        ExplainOptions { form, search: search.clone(), ..ExplainOptions::default() }
    }

    /// A pass that records what these options ask for, of a model that computes in this type unless they name another.
    pub(super) fn pass(&self, compute: Precision) -> Pass {
        let pass = Pass::inference(self.search.compute.unwrap_or(compute)).with_masks(&self.masks);
        match (self.form, self.scores) {
            (WeightForm::None, _) => pass,
            (_, ScoresKept::No) => pass.recording(),
            (_, ScoresKept::Yes) => pass.recording_scores(),
        }
    }

    /// As [`ExplainOptions::pass`] for a translator, whose cross attention gives the alignment.
    pub(super) fn aligning_pass(&self, compute: Precision) -> Pass {
        let pass = match self.form {
            WeightForm::None => self.pass(compute).recording_role(AttentionRole::Cross),
            _ => self.pass(compute),
        };
        pass.without_heads(&self.search.without_heads)
    }
}
