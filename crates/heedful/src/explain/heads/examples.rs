//! The sentences in which a head attends most sharply.
//!
//! ```text
//! sharpness = mean over the queries of the largest weight on a key that is not a separator
//! ```
//!
//! Idle heads attend to separators, so separators do not count. Short sentences are always sharp and long
//! ones do not fit a picture, so both are skipped.

use serde::Serialize;

use crate::plot::{Picture, alignment_svg};

/// The number of examples per head.
const EXAMPLES_PER_HEAD: usize = 3;
/// Sentences with fewer queries are skipped.
const MIN_QUERIES: usize = 4;
/// Sentences with more queries or keys are too wide for a picture.
const MAX_TOKENS: usize = 30;

/// A sentence pair with one head's attention weights.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadExample {
    /// Its line in the corpus, counted from 1, blank lines included.
    pub line: u64,
    /// How sharp the head's attention is, from 0 to 1.
    pub sharpness: f64,
    /// The source.
    pub source: String,
    /// The target.
    pub target: String,
    /// The query tokens.
    #[serde(skip)]
    pub queries: Vec<String>,
    /// The key tokens.
    #[serde(skip)]
    pub keys: Vec<String>,
    /// Queries × keys, row-major.
    #[serde(skip)]
    pub weights: Vec<f32>,
}

/// The sharpest sentences so far, sharpest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Examples(Vec<HeadExample>);

/// A sentence pair of the corpus.
pub(super) struct Pair<'a> {
    pub(super) line: u64,
    pub(super) texts: [&'a str; 2],
}

/// The tokens that a head attends to.
#[derive(Clone, Copy)]
pub(super) struct KeyTokens<'a> {
    pub(super) pieces: &'a [String],
    pub(super) is_separator: &'a [bool],
}

impl Examples {
    /// Keeps a sentence if it is among the sharpest.
    pub(super) fn add(&mut self, pair: &Pair<'_>, queries: &[String], keys: KeyTokens<'_>, weights: &[f32]) {
        let accepted = MIN_QUERIES..=MAX_TOKENS;
        if !accepted.contains(&queries.len()) || keys.pieces.len() > MAX_TOKENS {
            return;
        }
        let sharpness = sharpness(weights, keys.is_separator);
        let is_less_sharp = |kept: &HeadExample| kept.sharpness < sharpness;
        // A corpus may contain the same pair several times.
        let [source, target] = pair.texts;
        let is_duplicate = self.0.iter().any(|kept| kept.source == source && kept.target == target);
        if is_duplicate || (self.0.len() == EXAMPLES_PER_HEAD && !self.0.last().is_some_and(is_less_sharp)) {
            return;
        }
        let index = self.0.iter().position(is_less_sharp).unwrap_or(self.0.len());
        self.0.insert(
            index,
            HeadExample {
                line: pair.line,
                sharpness,
                source: source.to_owned(),
                target: target.to_owned(),
                queries: queries.to_vec(),
                keys: keys.pieces.to_vec(),
                weights: weights.to_vec(),
            },
        );
        self.0.truncate(EXAMPLES_PER_HEAD);
    }

    pub(super) fn sharpest(&self) -> Vec<HeadExample> {
        self.0.clone()
    }
}

impl HeadExample {
    /// Keys above, queries below, joined by lines for the weights.
    pub fn picture(&self) -> Picture {
        Picture {
            svg: alignment_svg(&self.weights, &self.queries, &self.keys),
            caption: format!("line {}, sharpness {:.2}", self.line, self.sharpness),
        }
    }
}

fn sharpness(weights: &[f32], is_separator: &[bool]) -> f64 {
    let rows = weights.chunks_exact(is_separator.len().max(1));
    let count = rows.len().max(1);
    let largest = |row: &[f32]| {
        let kept = row.iter().zip(is_separator).filter(|(_, is_separator)| !**is_separator);
        kept.map(|(weight, _)| f64::from(*weight)).fold(0.0, f64::max)
    };
    rows.map(largest).sum::<f64>() / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_tokens(pieces: &[String]) -> KeyTokens<'_> {
        KeyTokens { pieces, is_separator: &[false, false, false, true] }
    }

    #[test]
    fn attention_to_separators_does_not_count_as_sharp() {
        let found = sharpness(&[0.0, 1.0, 0.25, 0.75, 0.5, 0.5], &[false, true]);
        assert!((found - 0.25).abs() < 1e-12, "{found}");
    }

    #[test]
    fn the_sharpest_sentences_are_kept_in_order_without_duplicates() {
        let tokens: Vec<String> = ["a", "b", "c", "."].map(str::to_owned).to_vec();
        let mut examples = Examples::default();
        for (line, weight) in [(1, 0.5), (2, 0.9), (3, 0.9), (4, 0.2), (5, 0.7)] {
            let source = if line == 3 { "2".to_owned() } else { line.to_string() };
            let pair = Pair { line, texts: [&source, "x"] };
            let row = [weight, 0.0, 0.0, 1.0 - weight];
            examples.add(&pair, &tokens, key_tokens(&tokens), &[row; 4].concat());
        }
        // Too few queries, and too many keys.
        let pair = Pair { line: 6, texts: ["y", "x"] };
        examples.add(&pair, &tokens[..2], key_tokens(&tokens), &[1.0; 8]);
        let many = vec!["a".to_owned(); MAX_TOKENS + 1];
        let keys = KeyTokens { pieces: &many, is_separator: &[false; MAX_TOKENS + 1] };
        examples.add(&pair, &tokens, keys, &[1.0; 4 * (MAX_TOKENS + 1)]);
        let lines: Vec<u64> = examples.sharpest().iter().map(|example| example.line).collect();
        assert_eq!(lines, [2, 5, 1]);
        let picture = examples.sharpest()[0].picture();
        assert_eq!(picture.caption, "line 2, sharpness 0.90");
        assert!(picture.svg.contains("a → a: 0.900"), "{}", picture.svg);
    }
}
