//! The sentences in which a head shows best what it does.
//!
//! ```text
//! sharpness = mean over the queries of the largest weight of a key that is no separator
//! ```
//!
//! Heads that have nothing to do attend to separators, and a short sentence is sharp by itself. So separators do not count, and
//! only sentences do whose picture can be read.

use serde::Serialize;

use crate::plot::{Picture, alignment_svg};

/// How many sentences are kept for each head.
const KEPT: usize = 3;
/// Fewer queries say little.
const FEWEST: usize = 4;
/// More tokens than this, in a row of queries or of keys, are too wide for a picture.
const MOST: usize = 30;

/// A sentence pair, and what one head attends to in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadExample {
    /// Its number among all pairs, blank ones included, counted from 1: its line in the corpus.
    pub line: u64,
    /// How sharp the head's attention is, from 0 to 1.
    pub sharpness: f64,
    /// The source.
    pub source: String,
    /// The target.
    pub target: String,
    /// What the head attends from.
    #[serde(skip)]
    pub queries: Vec<String>,
    /// What it attends to.
    #[serde(skip)]
    pub keys: Vec<String>,
    /// Queries × keys, row after row.
    #[serde(skip)]
    pub weights: Vec<f32>,
}

/// The best sentences so far, the sharpest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Examples(Vec<HeadExample>);

/// A sentence pair as a survey reads it.
pub(super) struct Pair<'a> {
    pub(super) line: u64,
    pub(super) texts: [&'a str; 2],
}

/// A row of tokens.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) pieces: &'a [String],
    pub(super) is_separator: &'a [bool],
}

impl Examples {
    /// Keeps a sentence if it is among the best.
    pub(super) fn add(&mut self, pair: &Pair<'_>, queries: &[String], keys: Side<'_>, weights: &[f32]) {
        let readable = FEWEST..=MOST;
        if !readable.contains(&queries.len()) || keys.pieces.len() > MOST {
            return;
        }
        let sharpness = sharpness(weights, keys.is_separator);
        let is_sharper = |kept: &HeadExample| kept.sharpness < sharpness;
        // A text may stand in a corpus many times.
        let [source, target] = pair.texts;
        let is_known = self.0.iter().any(|kept| kept.source == source && kept.target == target);
        if is_known || (self.0.len() == KEPT && !self.0.last().is_some_and(is_sharper)) {
            return;
        }
        let place = self.0.iter().position(is_sharper).unwrap_or(self.0.len());
        self.0.insert(
            place,
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
        self.0.truncate(KEPT);
    }

    pub(super) fn sharpest(&self) -> Vec<HeadExample> {
        self.0.clone()
    }
}

impl HeadExample {
    /// Keys above, queries below, joined by what the head attends to.
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
        let words = row.iter().zip(is_separator).filter(|(_, is_separator)| !**is_separator);
        words.map(|(weight, _)| f64::from(*weight)).fold(0.0, f64::max)
    };
    rows.map(largest).sum::<f64>() / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(pieces: &[String]) -> Side<'_> {
        Side { pieces, is_separator: &[false, false, false, true] }
    }

    #[test]
    fn what_a_head_gives_to_separators_is_not_sharp() {
        let found = sharpness(&[0.0, 1.0, 0.25, 0.75, 0.5, 0.5], &[false, true]);
        assert!((found - 0.25).abs() < 1e-12, "{found}");
    }

    #[test]
    fn the_sharpest_sentences_are_kept_once_and_in_their_order() {
        let tokens: Vec<String> = ["a", "b", "c", "."].map(str::to_owned).to_vec();
        let mut examples = Examples::default();
        for (line, weight) in [(1, 0.5), (2, 0.9), (3, 0.9), (4, 0.2), (5, 0.7)] {
            let source = if line == 3 { "2".to_owned() } else { line.to_string() };
            let pair = Pair { line, texts: [&source, "x"] };
            let row = [weight, 0.0, 0.0, 1.0 - weight];
            examples.add(&pair, &tokens, side(&tokens), &[row; 4].concat());
        }
        // Too few queries, and too many keys.
        let pair = Pair { line: 6, texts: ["y", "x"] };
        examples.add(&pair, &tokens[..2], side(&tokens), &[1.0; 8]);
        let many = vec!["a".to_owned(); MOST + 1];
        let keys = Side { pieces: &many, is_separator: &[false; MOST + 1] };
        examples.add(&pair, &tokens, keys, &[1.0; 4 * (MOST + 1)]);
        let lines: Vec<u64> = examples.sharpest().iter().map(|example| example.line).collect();
        assert_eq!(lines, [2, 5, 1]);
        let picture = examples.sharpest()[0].picture();
        assert_eq!(picture.caption, "line 2, sharpness 0.90");
        assert!(picture.svg.contains("a → a: 0.900"), "{}", picture.svg);
    }
}
