//! Which pairs are left out of training, and the count of each reason.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use super::{CorpusReport, Pair, Unit};

/// Which pairs may stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filters {
    /// The most tokens a side may have, the marker of its end not counted.
    pub max_tokens: Option<usize>,
    /// What happens to pairs with more.
    pub over_long: OverLong,
    /// The most tokens that the longer side may have for each token of the shorter one.
    pub max_ratio: Option<f64>,
    /// What happens to pairs that were there before, both sides alike.
    pub duplicates: Duplicates,
}

impl Default for Filters {
    fn default() -> Filters {
        Filters {
            max_tokens: Some(256),
            over_long: OverLong::Filter,
            max_ratio: None,
            duplicates: Duplicates::Keep,
        }
    }
}

/// What happens to a pair with too many tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverLong {
    /// It is left out.
    #[default]
    Filter,
    /// Each side is cut after the last token that fits.
    Cut,
}

/// What happens to a pair that was there before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Duplicates {
    /// It counts again.
    #[default]
    Keep,
    /// It is left out. This remembers 16 bytes of hash for each distinct pair, about 40 MB of memory for a million.
    Drop,
}

/// Which sides of a pair are text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// Source and target.
    Both,
    /// The source alone: what stands in the target is no text, and is not judged.
    Source,
}

/// Why a pair is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing but white space on one side or both.
    Empty,
    /// The same pair was there before.
    Duplicate,
    /// More tokens than allowed.
    OverLong,
    /// One side is too many times as long as the other.
    Ratio,
}

/// Applies [`Filters`] pair by pair and counts.
pub struct Sieve {
    filters: Filters,
    sides: Sides,
    seen: HashSet<u128>,
    /// Both sides end to end, for hashing.
    joined: Vec<u8>,
    report: CorpusReport,
}

impl Sieve {
    /// Nothing read yet.
    pub fn new(filters: &Filters) -> Sieve {
        Sieve::judging(filters, Sides::Both, Unit::Pairs)
    }

    /// As [`Sieve::new`] for pairs of which these sides are text, called so in the report.
    pub fn judging(filters: &Filters, sides: Sides, unit: Unit) -> Sieve {
        let report = CorpusReport { filters: filters.clone(), unit, ..CorpusReport::default() };
        Sieve { filters: filters.clone(), sides, seen: HashSet::new(), joined: Vec::new(), report }
    }

    /// Counts a line of running text, which nothing is left out of.
    pub fn count_line(&mut self) {
        self.report.read += 1;
    }

    /// Counts a block of running text.
    pub fn count_block(&mut self, tokens: usize) {
        self.report.kept += 1;
        self.report.source_tokens += tokens as u64;
    }

    /// Judges a pair that was just read and its tokens; the tokens are cut where the filters ask for it.
    pub fn judge(&mut self, pair: &Pair, source: &mut Vec<u32>, target: &mut Vec<u32>) -> Result<(), Reason> {
        self.report.read += 1;
        let verdict = self.judge_text(pair, source, target).and_then(|()| self.judge_lengths(source, target));
        match verdict {
            Ok(()) => {
                self.report.kept += 1;
                self.report.source_tokens += source.len() as u64;
                if self.sides == Sides::Both {
                    self.report.target_tokens += target.len() as u64;
                }
            }
            Err(Reason::Empty) => self.report.empty += 1,
            Err(Reason::Duplicate) => self.report.duplicates += 1,
            Err(Reason::OverLong) => self.report.over_long += 1,
            Err(Reason::Ratio) => self.report.ratio += 1,
        }
        verdict
    }

    /// What was read, kept and left out so far.
    pub fn report(&self) -> &CorpusReport {
        &self.report
    }

    fn judge_text(&mut self, pair: &Pair, source: &[u32], target: &[u32]) -> Result<(), Reason> {
        let blank = |text: &str, tokens: &[u32]| tokens.is_empty() || text.trim().is_empty();
        let both = self.sides == Sides::Both;
        if blank(&pair.source, source) || (both && blank(&pair.target, target)) {
            return Err(Reason::Empty);
        }
        if self.filters.duplicates == Duplicates::Drop {
            let hash = self.hash(pair);
            if !self.seen.insert(hash) {
                return Err(Reason::Duplicate);
            }
        }
        Ok(())
    }

    /// A length goes in first, so that ("ab", "c") and ("a", "bc") differ.
    fn hash(&mut self, pair: &Pair) -> u128 {
        self.joined.clear();
        self.joined.extend_from_slice(&(pair.source.len() as u64).to_le_bytes());
        self.joined.extend_from_slice(pair.source.as_bytes());
        self.joined.extend_from_slice(pair.target.as_bytes());
        XxHash3_128::oneshot(&self.joined)
    }

    fn judge_lengths(&mut self, source: &mut Vec<u32>, target: &mut Vec<u32>) -> Result<(), Reason> {
        let (shorter, longer) = match self.sides {
            Sides::Both => (source.len().min(target.len()), source.len().max(target.len())),
            Sides::Source => (source.len(), source.len()),
        };
        if self.filters.max_ratio.is_some_and(|most| longer as f64 > most * shorter as f64) {
            return Err(Reason::Ratio);
        }
        if let Some(most) = self.filters.max_tokens.filter(|&most| longer > most) {
            match self.filters.over_long {
                OverLong::Filter => return Err(Reason::OverLong),
                OverLong::Cut => {
                    source.truncate(most);
                    if self.sides == Sides::Both {
                        target.truncate(most);
                    }
                    self.report.cut += 1;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(sieve: &mut Sieve, source: &str, target: &str) -> Result<(usize, usize), Reason> {
        let pair = Pair { source: source.to_owned(), target: target.to_owned() };
        let tokens = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
        let (mut source, mut target) = (tokens(source), tokens(target));
        sieve.judge(&pair, &mut source, &mut target).map(|()| (source.len(), target.len()))
    }

    #[test]
    fn every_pair_is_counted_once() {
        let filters = Filters {
            max_tokens: Some(5),
            max_ratio: Some(2.0),
            duplicates: Duplicates::Drop,
            ..Filters::default()
        };
        let mut sieve = Sieve::new(&filters);
        assert_eq!(judge(&mut sieve, "ab", "c"), Ok((2, 1)));
        assert_eq!(judge(&mut sieve, "a", "bc"), Ok((1, 2)));
        assert_eq!(judge(&mut sieve, "ab", "c"), Err(Reason::Duplicate));
        assert_eq!(judge(&mut sieve, "", "c"), Err(Reason::Empty));
        assert_eq!(judge(&mut sieve, "a", " \u{3000}"), Err(Reason::Empty));
        assert_eq!(judge(&mut sieve, "abcdef", "abcdef"), Err(Reason::OverLong));
        assert_eq!(judge(&mut sieve, "abc", "a"), Err(Reason::Ratio));
        let report = sieve.report();
        assert_eq!((report.read, report.kept, report.filtered()), (7, 2, 5));
        assert_eq!((report.empty, report.duplicates, report.over_long, report.ratio), (2, 1, 1, 1));
        assert_eq!((report.source_tokens, report.target_tokens), (3, 3));
    }

    #[test]
    fn over_long_pairs_are_cut_when_asked() {
        let filters = Filters { max_tokens: Some(3), over_long: OverLong::Cut, ..Filters::default() };
        let mut sieve = Sieve::new(&filters);
        assert_eq!(judge(&mut sieve, "abcdef", "ab"), Ok((3, 2)));
        assert_eq!((sieve.report().cut, sieve.report().kept), (1, 1));
    }
}
