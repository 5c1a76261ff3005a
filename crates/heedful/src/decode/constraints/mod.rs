//! Lexical constraints: the tokens that an output begins with (a forced prefix), and phrases that it contains
//! (terminology).
//!
//! ```text
//! prefix     until it ends, its next token is the only expansion; its log-probabilities count like all others
//! phrases    the next token of each unmet phrase is an expansion too, however improbable; the beam is divided among the
//!            hypotheses by how many tokens they still lack; <eos> is not allowed before all phrases are met
//! ```
//!
//! This division is dynamic beam allocation (Post and Vilar 2018): without it, hypotheses that accept an
//! improbable phrase would lose to those that postpone it, until too few tokens are left.

mod allocation;
mod phrases;

pub(super) use self::allocation::{Constrained, allocate};
pub(super) use self::phrases::{Phrases, Progress};

use super::DecodeError;

/// The constraints on the outputs of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Constraints {
    /// The tokens that an output begins with.
    pub prefix: Vec<u32>,
    /// Token sequences that an output must contain. If that is not possible within the maximum length, an
    /// output contains as many as possible, and [`Constraints::missing`] returns the others. Phrases need
    /// beam search.
    pub phrases: Vec<Vec<u32>>,
}

impl Constraints {
    /// The indices of the phrases that these tokens do not contain.
    pub fn missing(&self, tokens: &[u32]) -> Vec<usize> {
        let contains =
            |phrase: &[u32]| phrase.is_empty() || tokens.windows(phrase.len()).any(|window| window == phrase);
        (0..self.phrases.len()).filter(|&i| !contains(&self.phrases[i])).collect()
    }

    /// Checks that a search can meet them. Errors name sentence 0.
    pub(super) fn check(&self, eos: u32) -> Result<(), DecodeError> {
        let refuse = |reason| Err(DecodeError::Constraints { sentence: 0, reason });
        if self.phrases.iter().any(Vec::is_empty) {
            return refuse("a phrase has no token: leave it out");
        }
        if self.phrases.iter().chain([&self.prefix]).any(|tokens| tokens.contains(&eos)) {
            return refuse("a prefix or a phrase contains <eos>: give the tokens of a text");
        }
        Ok(())
    }
}
