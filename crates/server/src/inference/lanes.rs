//! Lanes: requests of about one length share a batch and a worker, so that nobody waits for one much longer than his own:
//! neither for a long text nor for a book of many sentences.
//!
//! ```text
//! short     up to 256 tokens in all its texts      what people type
//! medium    up to 2,048
//! long      everything beyond
//! ```
//!
//! While a lane computes, the longer ones give way between their tasks (`threads::ranked`); if it never pauses, they
//! still get a share. What a text's result is depends neither on its lane nor on what else is computed.

use heedful::tensor::cpu::threads::RANKS;

/// Requests of about one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane(usize);

/// The most tokens of a request in each lane but the last.
const LENGTHS: [usize; 2] = [256, 2048];
const NAMES: [&str; Lane::COUNT] = ["short", "medium", "long"];

impl Lane {
    pub(super) const COUNT: usize = LENGTHS.len() + 1;

    /// All of them, the shortest requests first.
    pub(super) fn all() -> impl Iterator<Item = Lane> {
        (0..Lane::COUNT).map(Lane)
    }

    /// That of a request of so many tokens.
    pub(super) fn of(tokens: usize) -> Lane {
        Lane(LENGTHS.iter().position(|&most| tokens <= most).unwrap_or(LENGTHS.len()))
    }

    pub(super) fn index(self) -> usize {
        self.0
    }

    /// What its requests are.
    pub(super) fn name(self) -> &'static str {
        NAMES[self.0]
    }

    /// Whether it is for what people type: most requests, one after the other.
    pub(super) fn is_shortest(self) -> bool {
        self.0 == 0
    }
}

const _: () = assert!(Lane::COUNT <= RANKS, "a rank for each lane");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_lane_of_its_length() {
        let lanes = [0, 1, 256, 257, 2048, 2049, 1_000_000].map(|tokens| Lane::of(tokens).index());
        assert_eq!(lanes, [0, 0, 0, 1, 1, 2, 2]);
        assert_eq!(Lane::all().filter(|lane| lane.is_shortest()).count(), 1);
    }
}
