//! Prints scores as text or as JSON.

use std::collections::BTreeMap;
use std::io::{self, Write};

use heedful::metrics::{Comparison, Confidence, MetricScore};
use serde::Serialize;

use super::settings::MetricName;

/// The result of one metric.
pub(super) struct MetricResult {
    pub(super) name: MetricName,
    pub(super) score: MetricScore,
    /// The comparison with another system, and that system's name.
    pub(super) comparison: Option<(Comparison, String)>,
    pub(super) digits: usize,
}

/// Lines in sacreBLEU's format, aligned at the score; a comparison follows on the next line.
pub(super) fn write_lines(results: &[MetricResult], out: &mut impl Write) -> io::Result<()> {
    let before_score =
        |result: &MetricResult| result.score.name.len() + 1 + result.score.signature.to_string().len();
    let widest = results.iter().map(before_score).max().unwrap_or(0);
    for result in results {
        let (digits, indent) = (result.digits, widest - before_score(result));
        writeln!(out, "{:indent$}{:.digits$}", "", result.score)?;
        if let Some((comparison, other)) = &result.comparison {
            writeln!(
                out,
                "{:>widest$} = {:.digits$} {other}: {:+.digits$}, p = {:.4} (paired bootstrap), p = {:.4} (approximate \
                 randomisation)",
                result.score.name,
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
pub(super) fn write_json(results: &[MetricResult], out: &mut impl Write) -> io::Result<()> {
    let object: BTreeMap<&str, ResultJson> =
        results.iter().map(|result| (result.name.key(), ResultJson::of(result))).collect();
    serde_json::to_writer(&mut *out, &object)?;
    writeln!(out)
}

#[derive(Serialize)]
struct ResultJson {
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

impl ResultJson {
    fn of(result: &MetricResult) -> ResultJson {
        let rounded = |value: f64| rounded(value, result.digits);
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
        ResultJson {
            score: rounded(result.score.score),
            signature: result.score.signature.to_string(),
            detail: result.score.detail.clone(),
            confidence: result.score.confidence.map(confidence),
            comparison: result.comparison.as_ref().map(comparison),
        }
    }
}

/// Rounds as the text output does, so that both show the same number.
fn rounded(value: f64, digits: usize) -> f64 {
    let shown: f64 = format!("{value:.digits$}").parse().expect("a number that was just written");
    // Converts −0 to 0.
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
