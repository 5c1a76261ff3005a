//! The decoding strategy of one sentence: its rows in a step, the scores that it needs, and the rows that it
//! continues with.
//!
//! A step computes only the requested scores: the top k of a row and a few other tokens need not materialize
//! all of its logits.

use std::borrow::Cow;

use heedful_tensor::Tensor;
use heedful_tensor::ops::{Normalizers, TopK};

/// The decoding of one sentence: beam search, sampling or forced decoding.
pub(super) trait Strategy: Send {
    /// The result for a sentence.
    type Output: Send;

    /// The rows of the next step; empty when the sentence is finished.
    fn rows(&self) -> &[Continuation];

    /// The scores that it needs for its rows. Called only while it has rows.
    fn score_request(&self) -> ScoreRequest<'_>;

    /// Chooses the next rows, given the requested scores of the current ones.
    fn advance(&mut self, scores: &Scores<'_>);

    /// The tokens of the best open hypothesis.
    fn partial_output(&self) -> Option<Vec<u32>> {
        None
    }

    /// The result, once no rows are left.
    fn into_output(self: Box<Self>) -> Self::Output;
}

/// A row: its parent row in the previous step (counted within the sentence), and its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Continuation {
    pub(super) parent: Option<usize>,
    pub(super) token: u32,
}

/// The scores that a strategy needs for each of its rows in the next step. It reads no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ScoreRequest<'p> {
    /// How many of a row's best tokens.
    pub(super) top_k: usize,
    /// Scores in addition to the top k.
    pub(super) extra: ExtraScores<'p>,
    /// If they are skipped, "log-probabilities" lack the same constant for all tokens of a row.
    pub(super) normalizers: Normalizers,
}

/// The scores that a strategy needs in addition to the top k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExtraScores<'p> {
    /// The scores of these tokens, which may be among the top k: the same tokens for all rows of the
    /// sentence.
    Tokens(&'p [u32]),
    /// The scores of all tokens.
    All,
}

/// The model's scores for the rows of one sentence.
pub(super) struct Scores<'a> {
    /// The logits of all tokens, if a strategy needs them.
    pub(super) logits: Option<&'a Tensor>,
    pub(super) best: &'a TopK,
    /// The sentence's first row.
    pub(super) first: usize,
}

impl Scores<'_> {
    /// A row's best tokens and their log-probabilities, best first: at least [`ScoreRequest::top_k`] of them.
    pub(super) fn best(&self, row: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let normalizer = self.normalizer(row);
        let best = self.best.best(self.first + row).iter();
        best.map(move |best| (best.index, f64::from(best.score) - normalizer))
    }

    /// The log-probability of one token after a row: a token of [`ScoreRequest::extra`].
    pub(super) fn log_probability(&self, row: usize, token: u32) -> f64 {
        let score = match self.logits {
            Some(logits) => logits.row(self.first + row)[token as usize],
            None => self.best.extra(self.first + row, token).expect("a requested token"),
        };
        f64::from(score) - self.normalizer(row)
    }

    /// The scores of all tokens after a row, if the strategy requested [`ExtraScores::All`].
    pub(super) fn row(&self, row: usize) -> Cow<'_, [f32]> {
        self.logits.expect("all scores were requested").row(self.first + row)
    }

    fn normalizer(&self, row: usize) -> f64 {
        self.best.normalizer(self.first + row)
    }
}
