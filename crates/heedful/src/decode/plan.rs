//! How one sentence is decoded: its rows of a step, what it reads of their scores, and which rows it goes on with.
//!
//! A step may then compute no more than what is read: the best tokens of a row and a few others do not take all of its logits.

use std::borrow::Cow;

use heedful_tensor::Tensor;
use heedful_tensor::ops::TopK;

/// How one sentence is decoded.
pub(super) trait Plan: Send {
    /// The result for a sentence.
    type Found: Send;

    /// The rows of the next step; none when the sentence is finished.
    fn rows(&self) -> &[Continuation];

    /// What it reads of the scores of its rows. It has rows.
    fn needs(&self) -> Needs<'_>;

    /// Chooses the next rows, given the scores of the current ones that it needs.
    fn advance(&mut self, scores: &Scores<'_>);

    /// The tokens of its best open hypothesis.
    fn so_far(&self) -> Option<Vec<u32>> {
        None
    }

    /// The result of a plan without rows.
    fn found(self: Box<Self>) -> Self::Found;
}

/// The row of the previous step that a row continues (counted within its sentence), and its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Continuation {
    pub(super) parent: Option<usize>,
    pub(super) token: u32,
}

/// What a plan reads of each of its rows in the next step. It reads nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs<'p> {
    /// How many of a row's best tokens.
    pub(super) best: usize,
    /// What it reads besides them.
    pub(super) others: Others<'p>,
}

/// What a plan reads besides the best tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others<'p> {
    /// The scores of these tokens, which may be among the best: the same tokens for all rows of the plan.
    Tokens(&'p [u32]),
    /// The scores of all tokens.
    All,
}

/// The model's scores for the rows of one sentence.
pub(super) struct Scores<'a> {
    /// Of all tokens, if a plan needs them.
    pub(super) logits: Option<&'a Tensor>,
    pub(super) best: &'a TopK,
    /// The sentence's first row.
    pub(super) first: usize,
}

impl Scores<'_> {
    /// A row's best tokens and their log-probabilities, best first: [`Needs::best`] of them, or more.
    pub(super) fn best(&self, row: usize) -> impl Iterator<Item = (u32, f64)> + '_ {
        let normalizer = self.normalizer(row);
        let best = self.best.best(self.first + row).iter();
        best.map(move |best| (best.index, f64::from(best.score) - normalizer))
    }

    /// The log-probability of one token after a row: one of [`Needs::others`].
    pub(super) fn log_probability(&self, row: usize, token: u32) -> f64 {
        let score = match self.logits {
            Some(logits) => logits.row(self.first + row)[token as usize],
            None => self.best.other(self.first + row, token).expect("a token that the plan needs"),
        };
        f64::from(score) - self.normalizer(row)
    }

    /// The scores of all tokens after a row, if the plan needs [`Others::All`].
    pub(super) fn row(&self, row: usize) -> Cow<'_, [f32]> {
        self.logits.expect("the plan needs all tokens").row(self.first + row)
    }

    fn normalizer(&self, row: usize) -> f64 {
        self.best.normalizer(self.first + row)
    }
}
