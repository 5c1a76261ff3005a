//! How many pairs were read, kept and filtered, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Filters, OverLong};
use crate::plot::thousands;

/// The counts of one corpus. Every pair that was read is counted exactly once: kept, or under one reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CorpusReport {
    /// Pairs in the files.
    pub read: u64,
    /// Pairs that were kept.
    pub kept: u64,
    /// Pairs that are empty on one or both sides.
    pub empty: u64,
    /// Pairs that repeat an earlier one.
    pub duplicates: u64,
    /// Pairs with too many tokens.
    pub over_long: u64,
    /// Pairs whose sides differ too much in length.
    pub ratio: u64,
    /// Kept pairs that were truncated to the maximum length.
    pub cut: u64,
    /// Tokens of the kept sources.
    pub source_tokens: u64,
    /// Tokens of the kept targets.
    pub target_tokens: u64,
    /// The filters that were applied.
    pub(crate) filters: Filters,
    /// The unit of the counts.
    #[serde(default)]
    pub unit: CorpusUnit,
}

/// The kind of examples that a report counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CorpusUnit {
    /// Sentences with their translations.
    #[default]
    Pairs,
    /// Texts, one a line.
    Texts,
    /// Lines of continuous text, cut into blocks.
    Blocks,
}

impl CorpusReport {
    /// Pairs that were filtered out, for any reason.
    pub(crate) fn filtered(&self) -> u64 {
        self.empty + self.duplicates + self.over_long + self.ratio
    }

    fn write_blocks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = [("lines read", self.read), ("blocks", self.kept), ("tokens", self.source_tokens)];
        write_table(rows.map(|(name, count)| (name.to_owned(), count)).to_vec(), f)
    }
}

/// A table. Inactive filters have no row; a filter that removed nothing shows 0.
impl fmt::Display for CorpusReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = self.filters.max_tokens.unwrap_or(usize::MAX);
        let (read, empty, kept) = match self.unit {
            CorpusUnit::Pairs => ("pairs read", "  empty on a side", "pairs kept"),
            CorpusUnit::Texts => ("texts read", "  empty", "texts kept"),
            CorpusUnit::Blocks => return self.write_blocks(f),
        };
        let mut rows = vec![(read.to_owned(), self.read), (empty.to_owned(), self.empty)];
        if self.filters.duplicates == super::Duplicates::Drop {
            rows.push(("  duplicates".to_owned(), self.duplicates));
        }
        if let Some(ratio) = self.filters.max_ratio {
            rows.push((format!("  one side over {ratio} × the other"), self.ratio));
        }
        match (self.filters.max_tokens, self.filters.over_long) {
            (Some(_), OverLong::Filter) => rows.push((format!("  over {longest} tokens"), self.over_long)),
            (Some(_), OverLong::Cut) | (None, _) => {}
        }
        rows.push((kept.to_owned(), self.kept));
        if self.filters.max_tokens.is_some() && self.filters.over_long == OverLong::Cut {
            rows.push((format!("  cut to {longest} tokens"), self.cut));
        }
        match self.unit {
            CorpusUnit::Pairs => {
                rows.push(("source tokens".to_owned(), self.source_tokens));
                rows.push(("target tokens".to_owned(), self.target_tokens));
            }
            CorpusUnit::Texts | CorpusUnit::Blocks => rows.push(("tokens".to_owned(), self.source_tokens)),
        }
        write_table(rows, f)
    }
}

fn write_table(rows: Vec<(String, u64)>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let rows: Vec<(String, String)> =
        rows.into_iter().map(|(name, count)| (name, thousands(count))).collect();
    let widths = |column: fn(&(String, String)) -> usize| rows.iter().map(column).max().unwrap_or(0);
    let (names, counts) = (widths(|row| row.0.chars().count()), widths(|row| row.1.len()));
    for (index, (name, count)) in rows.iter().enumerate() {
        let end = if index + 1 < rows.len() { "\n" } else { "" };
        write!(f, "{name:<names$}  {count:>counts$}{end}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_aligned_and_omits_inactive_filters() {
        let report = CorpusReport {
            read: 1_234_567,
            kept: 1_234_000,
            empty: 67,
            over_long: 500,
            source_tokens: 20_000_000,
            target_tokens: 999,
            ..CorpusReport::default()
        };
        let table = "\
pairs read          1,234,567
  empty on a side          67
  over 256 tokens         500
pairs kept          1,234,000
source tokens      20,000,000
target tokens             999";
        assert_eq!(report.to_string(), table);
    }

    #[test]
    fn reports_round_trip_through_json() {
        let report = CorpusReport { read: 3, kept: 2, empty: 1, ..CorpusReport::default() };
        let json = serde_json::to_string(&report).expect("numbers are JSON");
        assert_eq!(serde_json::from_str::<CorpusReport>(&json).expect("our own JSON"), report);
    }
}
