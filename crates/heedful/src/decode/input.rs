//! The inputs of a search: sentences with constraints, each with an id.

use super::constraints::Constraints;

/// A source, and the constraints on its outputs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SearchInput {
    /// The tokens of the source.
    pub source: Vec<u32>,
    /// The constraints on the outputs.
    pub constraints: Constraints,
}

impl From<Vec<u32>> for SearchInput {
    fn from(source: Vec<u32>) -> SearchInput {
        SearchInput { source, constraints: Constraints::default() }
    }
}

/// The id of a sentence in its [`Scheduler`](super::Scheduler), counted from 0 in the order of pushing.
/// Errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SentenceId(pub usize);
