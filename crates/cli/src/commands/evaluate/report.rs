//! Scores for people and for programs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use heedful::metrics::{Comparison, Confidence, Score};
use serde::Serialize;

use super::settings::MetricName;

/// One metric's verdict.
pub(super) struct Entry {
    pub(super) name: MetricName,
    pub(super) score: Score,
    /// With the name of the other system.
    pub(super) comparison: Option<(Comparison, String)>,
    pub(super) digits: usize,
}

/// sacreBLEU's lines, aligned at the score; below each, what a comparison says.
pub(super) fn write_lines(entries: &[Entry], out: &mut impl Write) -> io::Result<()> {
    let before_score = |entry: &Entry| entry.score.name.len() + 1 + entry.score.signature.to_string().len();
    let widest = entries.iter().map(before_score).max().unwrap_or(0);
    for entry in entries {
        let (digits, indent) = (entry.digits, widest - before_score(entry));
        writeln!(out, "{:indent$}{:.digits$}", "", entry.score)?;
        if let Some((comparison, other)) = &entry.comparison {
            writeln!(
                out,
                "{:>widest$} = {:.digits$} {other}: {:+.digits$}, p = {:.4} (paired bootstrap), p = {:.4} (approximate \
                 randomisation)",
                entry.score.name,
                comparison.other,
                comparison.other - comparison.baseline,
                comparison.bootstrap_p,
                comparison.randomisation_p
            )?;
        }
    }
    Ok(())
}

/// One object on one line.
pub(super) fn write_json(entries: &[Entry], out: &mut impl Write) -> io::Result<()> {
    let object: BTreeMap<&str, Json> =
        entries.iter().map(|entry| (entry.name.key(), Json::of(entry))).collect();
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}

#[derive(Serialize)]
struct Json {
    score: f64,
    signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<ConfidenceJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<ComparisonJson>,
}

#[derive(Serialize)]
struct ConfidenceJson {
    mean: f64,
    margin: f64,
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct ComparisonJson {
    other: String,
    score: f64,
    difference: f64,
    paired_bootstrap_p: f64,
    approximate_randomisation_p: f64,
}

impl Json {
    fn of(entry: &Entry) -> Json {
        let rounded = |value: f64| rounded(value, entry.digits);
        let confidence = |Confidence { mean, margin, low, high, .. }: Confidence| ConfidenceJson {
            mean: rounded(mean),
            margin: rounded(margin),
            low: rounded(low),
            high: rounded(high),
        };
        let comparison = |(comparison, other): &(Comparison, String)| ComparisonJson {
            other: other.clone(),
            score: rounded(comparison.other),
            difference: rounded(comparison.other - comparison.baseline),
            paired_bootstrap_p: comparison.bootstrap_p,
            approximate_randomisation_p: comparison.randomisation_p,
        };
        Json {
            score: rounded(entry.score.score),
            signature: entry.score.signature.to_string(),
            detail: entry.score.detail.clone(),
            confidence: entry.score.confidence.map(confidence),
            comparison: entry.comparison.as_ref().map(comparison),
        }
    }
}

/// What people read is what programs get.
fn rounded(value: f64, digits: usize) -> f64 {
    let shown: f64 = format!("{value:.digits$}").parse().expect("a number that was just written");
    // No −0.
    shown + 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_as_python_rounds_them() {
        let cases =
            [(38.015, 38.02), (3.125, 3.12), (9.375, 9.38), (0.125, 0.12), (2.675, 2.67), (-0.001, 0.0)];
        for (value, expected) in cases {
            assert_eq!(rounded(value, 2), expected, "{value}");
        }
    }
}
