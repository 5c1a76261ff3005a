//! What an output must have: the tokens that it begins with (a forced prefix), and phrases that it contains (terminology).
//!
//! ```text
//! prefix     as long as it lasts, its next token is the only one; its log-probabilities count as any other's
//! phrases    the next token of each phrase that is not met is an expansion too, however improbable; the beam is shared out
//!            among the hypotheses by how much they still lack; <eos> is not allowed before all phrases are met
//! ```
//!
//! Sharing out the beam is dynamic beam allocation (Post and Vilar 2018): without it, hypotheses that accept an improbable
//! phrase would lose to those that put it off, until no room is left.

mod allocation;
mod phrases;

pub(super) use self::allocation::{Placed, allocate};
pub(super) use self::phrases::{Phrases, Progress};

use super::DecodeError;

/// What the outputs of a source must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Constraints {
    /// The tokens that an output begins with.
    pub prefix: Vec<u32>,
    /// Sequences of tokens, each of which an output contains. If that is not possible within the maximum length, an output
    /// has as many as it can; [`Constraints::missing`] tells which it lacks. They need beam search.
    pub phrases: Vec<Vec<u32>>,
}

impl Constraints {
    /// The phrases, by their index, that these tokens do not contain.
    pub fn missing(&self, tokens: &[u32]) -> Vec<usize> {
        let contains =
            |phrase: &[u32]| phrase.is_empty() || tokens.windows(phrase.len()).any(|part| part == phrase);
        (0..self.phrases.len()).filter(|&i| !contains(&self.phrases[i])).collect()
    }

    /// Whether a search can meet them. Errors name sentence 0.
    pub(super) fn check(&self, eos: u32) -> Result<(), DecodeError> {
        let refuse = |reason| Err(DecodeError::Constraints { sentence: 0, reason });
        if self.phrases.iter().any(Vec::is_empty) {
            return refuse("a phrase has no token: leave it out");
        }
        if self.phrases.iter().chain([&self.prefix]).any(|tokens| tokens.contains(&eos)) {
            return refuse("a prefix or a phrase has <eos>: give the tokens of a text");
        }
        Ok(())
    }
}
