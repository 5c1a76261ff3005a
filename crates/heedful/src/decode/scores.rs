//! What a step tells the plan of a sentence.

use std::borrow::Cow;

use heedful_tensor::Tensor;
use heedful_tensor::ops::TopK;

/// The model's scores for the rows of one sentence.
pub(super) struct Scores<'a> {
    /// Of all tokens, if a plan needs them.
    pub(super) logits: Option<&'a Tensor>,
    pub(super) best: &'a TopK,
    /// The sentence's first row.
    pub(super) first: usize,
}

impl Scores<'_> {
    /// A row's best tokens and their log-probabilities, best first: [`Needs::best`](super::needs::Needs::best) of them, or more.
    pub(super) fn best(&self, row: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let normalizer = self.normalizer(row);
        let best = self.best.best(self.first + row).iter();
        best.map(move |best| (best.index, f64::from(best.score) - normalizer))
    }

    /// The log-probability of one token after a row: one of [`Needs::others`](super::needs::Needs::others).
    pub(super) fn log_probability(&self, row: usize, token: u32) -> f64 {
        let score = match self.logits {
            Some(logits) => logits.row(self.first + row)[token as usize],
            None => self.best.other(self.first + row, token).expect("a token that the plan needs"),
        };
        f64::from(score) - self.normalizer(row)
    }

    /// The scores of all tokens after a row, if the plan needs [`Others::All`](super::needs::Others::All).
    pub(super) fn row(&self, row: usize) -> Cow<'_, [f32]> {
        self.logits.expect("the plan needs all tokens").row(self.first + row)
    }

    fn normalizer(&self, row: usize) -> f64 {
        self.best.normalizer(self.first + row)
    }
}
