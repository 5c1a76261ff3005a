//! Filters that exclude pairs from training, with a count for each reason.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use super::{CorpusReport, CorpusUnit, Pair};

/// The conditions under which pairs are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filters {
    /// Maximum number of tokens of a side, without `<eos>`.
    pub max_tokens: Option<usize>,
    /// How longer pairs are handled.
    pub over_long: OverLong,
    /// Maximum ratio of the token counts of the longer and the shorter side.
    pub(crate) max_ratio: Option<f64>,
    /// How pairs that repeat an earlier pair on both sides are handled.
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

/// How a pair with too many tokens is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OverLong {
    /// It is left out.
    #[default]
    Filter,
    /// Each side is truncated.
    Cut,
}

/// How a pair that repeats an earlier one is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Duplicates {
    /// It is kept.
    #[default]
    Keep,
    /// It is left out. This stores a 16-byte hash of each distinct pair, about 40 MB of memory for a million.
    Drop,
}

/// The sides of a pair that are text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextSides {
    /// Source and target.
    Both,
    /// The source alone: the target is not text, and no filter applies to it.
    Source,
}

/// Why a pair is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterReason {
    /// A side is empty or only white space.
    Empty,
    /// The pair repeats an earlier one.
    Duplicate,
    /// A side has more tokens than allowed.
    OverLong,
    /// The ratio of the lengths is too large.
    Ratio,
}

/// Applies [`Filters`] pair by pair and counts.
pub struct CorpusFilter {
    filters: Filters,
    sides: TextSides,
    seen: HashSet<u128>,
    /// Both sides concatenated, for hashing.
    joined: Vec<u8>,
    report: CorpusReport,
}

impl CorpusFilter {
    /// A filter for pairs of sentences, with all counts at 0.
    pub fn new(filters: &Filters) -> CorpusFilter {
        CorpusFilter::with_sides(filters, TextSides::Both, CorpusUnit::Pairs)
    }

    /// As [`CorpusFilter::new`], for pairs in which only `sides` are text; the report counts them as `unit`.
    pub(crate) fn with_sides(filters: &Filters, sides: TextSides, unit: CorpusUnit) -> CorpusFilter {
        let report = CorpusReport { filters: filters.clone(), unit, ..CorpusReport::default() };
        CorpusFilter { filters: filters.clone(), sides, seen: HashSet::new(), joined: Vec::new(), report }
    }

    /// Counts a line of continuous text, which is never filtered.
    pub(crate) fn count_line(&mut self) {
        self.report.read += 1;
    }

    /// Counts a block of continuous text.
    pub(crate) fn count_block(&mut self, tokens: usize) {
        self.report.kept += 1;
        self.report.source_tokens += tokens as u64;
    }

    /// Applies the filters to a pair and its tokens, and counts it; the filters may truncate the tokens.
    pub fn check(
        &mut self,
        pair: &Pair,
        source: &mut Vec<u32>,
        target: &mut Vec<u32>,
    ) -> Result<(), FilterReason> {
        self.report.read += 1;
        let verdict = self.check_text(pair, source, target).and_then(|()| self.check_lengths(source, target));
        match verdict {
            Ok(()) => {
                self.report.kept += 1;
                self.report.source_tokens += source.len() as u64;
                if self.sides == TextSides::Both {
                    self.report.target_tokens += target.len() as u64;
                }
            }
            Err(FilterReason::Empty) => self.report.empty += 1,
            Err(FilterReason::Duplicate) => self.report.duplicates += 1,
            Err(FilterReason::OverLong) => self.report.over_long += 1,
            Err(FilterReason::Ratio) => self.report.ratio += 1,
        }
        verdict
    }

    /// The counts so far.
    pub fn report(&self) -> &CorpusReport {
        &self.report
    }

    fn check_text(&mut self, pair: &Pair, source: &[u32], target: &[u32]) -> Result<(), FilterReason> {
        let blank = |text: &str, tokens: &[u32]| tokens.is_empty() || text.trim().is_empty();
        let both = self.sides == TextSides::Both;
        if blank(&pair.source, source) || (both && blank(&pair.target, target)) {
            return Err(FilterReason::Empty);
        }
        if self.filters.duplicates == Duplicates::Drop {
            let hash = self.hash(pair);
            if !self.seen.insert(hash) {
                return Err(FilterReason::Duplicate);
            }
        }
        Ok(())
    }

    /// Hashes the length of the source first, so that ("ab", "c") and ("a", "bc") differ.
    fn hash(&mut self, pair: &Pair) -> u128 {
        self.joined.clear();
        self.joined.extend_from_slice(&(pair.source.len() as u64).to_le_bytes());
        self.joined.extend_from_slice(pair.source.as_bytes());
        self.joined.extend_from_slice(pair.target.as_bytes());
        XxHash3_128::oneshot(&self.joined)
    }

    fn check_lengths(&mut self, source: &mut Vec<u32>, target: &mut Vec<u32>) -> Result<(), FilterReason> {
        let (shorter, longer) = match self.sides {
            TextSides::Both => (source.len().min(target.len()), source.len().max(target.len())),
            TextSides::Source => (source.len(), source.len()),
        };
        if self.filters.max_ratio.is_some_and(|max| longer as f64 > max * shorter as f64) {
            return Err(FilterReason::Ratio);
        }
        if let Some(max) = self.filters.max_tokens.filter(|&max| longer > max) {
            match self.filters.over_long {
                OverLong::Filter => return Err(FilterReason::OverLong),
                OverLong::Cut => {
                    source.truncate(max);
                    if self.sides == TextSides::Both {
                        target.truncate(max);
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

    fn check(filter: &mut CorpusFilter, source: &str, target: &str) -> Result<(usize, usize), FilterReason> {
        let pair = Pair { source: source.to_owned(), target: target.to_owned() };
        let tokens = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
        let (mut source, mut target) = (tokens(source), tokens(target));
        filter.check(&pair, &mut source, &mut target).map(|()| (source.len(), target.len()))
    }

    #[test]
    fn every_pair_is_counted_once() {
        let filters = Filters {
            max_tokens: Some(5),
            max_ratio: Some(2.0),
            duplicates: Duplicates::Drop,
            ..Filters::default()
        };
        let mut filter = CorpusFilter::new(&filters);
        assert_eq!(check(&mut filter, "ab", "c"), Ok((2, 1)));
        assert_eq!(check(&mut filter, "a", "bc"), Ok((1, 2)));
        assert_eq!(check(&mut filter, "ab", "c"), Err(FilterReason::Duplicate));
        assert_eq!(check(&mut filter, "", "c"), Err(FilterReason::Empty));
        assert_eq!(check(&mut filter, "a", " \u{3000}"), Err(FilterReason::Empty));
        assert_eq!(check(&mut filter, "abcdef", "abcdef"), Err(FilterReason::OverLong));
        assert_eq!(check(&mut filter, "abc", "a"), Err(FilterReason::Ratio));
        let report = filter.report();
        assert_eq!((report.read, report.kept, report.filtered()), (7, 2, 5));
        assert_eq!((report.empty, report.duplicates, report.over_long, report.ratio), (2, 1, 1, 1));
        assert_eq!((report.source_tokens, report.target_tokens), (3, 3));
    }

    #[test]
    fn over_long_pairs_are_cut_when_asked() {
        let filters = Filters { max_tokens: Some(3), over_long: OverLong::Cut, ..Filters::default() };
        let mut filter = CorpusFilter::new(&filters);
        assert_eq!(check(&mut filter, "abcdef", "ab"), Ok((3, 2)));
        assert_eq!((filter.report().cut, filter.report().kept), (1, 1));
    }
}
