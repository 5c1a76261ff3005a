//! Lanes: requests of similar length share a batch and a worker, so that a short request never waits for a
//! much longer one, be it a long text or a book of many sentences.
//!
//! ```text
//! short     up to 256 tokens in all texts of the request: typed text
//! medium    up to 2,048
//! long      above 2,048
//! ```
//!
//! While a lane computes, longer lanes yield between their tasks (`threads::with_priority`); if it never
//! pauses, they still get a share of the time. A result depends neither on the lane nor on other work.

use heedful::tensor::cpu::threads::PRIORITIES;

/// A class of requests of similar length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane(usize);

/// The maximum tokens of a request in each lane but the last.
const MAX_TOKENS: [usize; 2] = [256, 2048];
const NAMES: [&str; Lane::COUNT] = ["short", "medium", "long"];

impl Lane {
    pub(super) const COUNT: usize = MAX_TOKENS.len() + 1;

    /// All lanes, the shortest requests first.
    pub(super) fn all() -> impl Iterator<Item = Lane> {
        (0..Lane::COUNT).map(Lane)
    }

    /// The lane of a request with this many tokens.
    pub(super) fn of(tokens: usize) -> Lane {
        Lane(MAX_TOKENS.iter().position(|&most| tokens <= most).unwrap_or(MAX_TOKENS.len()))
    }

    pub(super) fn index(self) -> usize {
        self.0
    }

    /// The adjective of its requests.
    pub(super) fn name(self) -> &'static str {
        NAMES[self.0]
    }

    /// Whether it is the lane of typed text, which has most of the requests.
    pub(super) fn is_shortest(self) -> bool {
        self.0 == 0
    }
}

const _: () = assert!(Lane::COUNT <= PRIORITIES, "a priority for each lane");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_tokens_decides_the_lane() {
        let lanes = [0, 1, 256, 257, 2048, 2049, 1_000_000].map(|tokens| Lane::of(tokens).index());
        assert_eq!(lanes, [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(Lane::all().filter(|lane| lane.is_shortest()).count(), 1);
    }
}
