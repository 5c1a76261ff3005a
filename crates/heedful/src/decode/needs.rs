//! What a plan reads of the scores of a step.
//!
//! A step may then compute no more than that: the best tokens of a row and a few others do not take all of its logits.

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
