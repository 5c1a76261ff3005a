//! chrF and chrF++ (Popović 2015, 2017) as sacreBLEU computes them: an F-score over character n-grams and
//! word n-grams.
//!
//! ```text
//! chrF_β = 100 · (1 + β²) · P · R / (β² · P + R)     P, R: precision and recall, averaged over the orders
//! ```

use super::case::Case;
use super::evaluation::{Evaluation, Metric, MetricScore};
use super::ngrams::{Lexicon, NGrams};
use super::references::References;
use super::spaces::{is_space, words};

/// How chrF is computed. The default is sacreBLEU's chrF2; [`ChrfOptions::plus_plus`] is chrF2++.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChrfOptions {
    /// The longest character n-gram.
    pub char_order: usize,
    /// The longest word n-gram: 0 for chrF, 1 for chrF+, 2 for chrF++.
    pub word_order: usize,
    /// Recall weighs `β` times as much as precision.
    pub beta: u32,
    /// Whether case matters.
    pub case: Case,
    /// Whether white space counts as characters.
    pub whitespace: Whitespace,
    /// How orders without n-grams are handled.
    pub smoothing: ChrfSmoothing,
}

impl Default for ChrfOptions {
    fn default() -> ChrfOptions {
        ChrfOptions {
            char_order: 6,
            word_order: 0,
            beta: 2,
            case: Case::Mixed,
            whitespace: Whitespace::Dropped,
            smoothing: ChrfSmoothing::EffectiveOrder,
        }
    }
}

impl ChrfOptions {
    /// The same options with word unigrams and bigrams.
    pub fn plus_plus(self) -> ChrfOptions {
        ChrfOptions { word_order: 2, ..self }
    }
}

/// Whether white space counts as characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whitespace {
    /// `ab cd` is `abcd`.
    Dropped,
    /// A space is a character.
    Counted,
}

/// How orders without n-grams are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChrfSmoothing {
    /// They are excluded from the averages.
    EffectiveOrder,
    /// The F-scores of all orders are averaged, with a tiny value for orders without n-grams, as in
    /// `chrF++.py`, Moses and NLTK.
    Epsilon,
}

/// The chrF of a corpus; `references[r][sentence]`.
///
/// # Panics
/// If there is no reference, or the numbers of sentences differ.
pub fn corpus_chrf(hypotheses: &[String], references: &[Vec<String>], options: &ChrfOptions) -> MetricScore {
    Evaluation::new(options, hypotheses, &References::new(references)).score()
}

// The statistics of a sentence: for each order the number of n-grams in the hypothesis, in the reference and
// in both, for the reference with the best score.
impl Metric for ChrfOptions {
    fn name(&self) -> String {
        format!("chrF{}{}", self.beta, "+".repeat(self.word_order))
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let effective = match self.smoothing {
            ChrfSmoothing::EffectiveOrder => "yes",
            ChrfSmoothing::Epsilon => "no",
        };
        let space = match self.whitespace {
            Whitespace::Dropped => "no",
            Whitespace::Counted => "yes",
        };
        vec![
            ("case", self.case.name().to_owned()),
            ("eff", effective.to_owned()),
            ("nc", self.char_order.to_string()),
            ("nw", self.word_order.to_string()),
            ("space", space.to_owned()),
        ]
    }

    fn width(&self) -> usize {
        3 * (self.char_order + self.word_order)
    }

    fn measure(&self, hypothesis: &str, references: &[&str], statistics: &mut [f64]) {
        let texts: Vec<_> =
            std::iter::once(&hypothesis).chain(references).map(|text| self.case.apply(text)).collect();
        let characters: Vec<Vec<u32>> = texts.iter().map(|text| self.characters(text)).collect();
        let mut lexicon = Lexicon::default();
        let words: Vec<Vec<u32>> = texts
            .iter()
            .map(|text| words_and_punctuation(text).map(|word| lexicon.id(word)).collect())
            .collect();

        let width = self.width();
        let mut candidates = vec![0.0; width * references.len()];
        let kinds = [(&characters, 0, self.char_order), (&words, self.char_order, self.word_order)];
        for (sequences, first, orders) in kinds {
            let mut ngrams = NGrams::new(sequences.iter().map(Vec::as_slice).collect());
            for order in first..first + orders {
                ngrams.next_order();
                for (reference, row) in candidates.chunks_exact_mut(width).enumerate() {
                    row[3 * order..][..3].copy_from_slice(&counts(&ngrams, 1 + reference));
                }
            }
        }
        let mut best = f64::NEG_INFINITY;
        for row in candidates.chunks_exact(width) {
            let score = self.score(row);
            if score > best {
                best = score;
                statistics.copy_from_slice(row);
            }
        }
    }

    fn score(&self, sums: &[f64]) -> f64 {
        const EPSILON: f64 = 1e-16;
        let factor = f64::from(self.beta).powi(2);
        let f_score = |p: f64, r: f64| (1.0 + factor) * p * r / (factor * p + r);
        let (mut smoothed, mut precisions, mut recalls, mut orders) = (0.0, 0.0, 0.0, 0.0);
        for counts in sums.chunks_exact(3) {
            let (ours, theirs, matches) = (counts[0], counts[1], counts[2]);
            let precision = if ours > 0.0 { matches / ours } else { EPSILON };
            let recall = if theirs > 0.0 { matches / theirs } else { EPSILON };
            let is_defined = factor * precision + recall > 0.0;
            smoothed += if is_defined { f_score(precision, recall) } else { EPSILON };
            if ours > 0.0 && theirs > 0.0 {
                precisions += precision;
                recalls += recall;
                orders += 1.0;
            }
        }
        match self.smoothing {
            ChrfSmoothing::Epsilon => 100.0 * smoothed / (self.char_order + self.word_order) as f64,
            ChrfSmoothing::EffectiveOrder if precisions + recalls == 0.0 => 0.0,
            ChrfSmoothing::EffectiveOrder => 100.0 * f_score(precisions / orders, recalls / orders),
        }
    }
}

impl ChrfOptions {
    fn characters(&self, text: &str) -> Vec<u32> {
        let is_counted = |c: &char| self.whitespace == Whitespace::Counted || !is_space(*c);
        text.chars().filter(is_counted).map(u32::from).collect()
    }
}

/// The number of n-grams of the hypothesis (0 if the reference has none), of the reference, and of matches.
fn counts(ngrams: &NGrams<'_>, reference: usize) -> [f64; 3] {
    let theirs = ngrams.count(reference);
    let ours = if theirs == 0 { 0 } else { ngrams.count(0) };
    let matches = ngrams.matches(0, reference..reference + 1);
    [ours as f64, theirs as f64, matches as f64]
}

/// Words, with at most one ASCII punctuation character split off from each: the last character, else the
/// first.
fn words_and_punctuation(text: &str) -> impl Iterator<Item = &str> {
    words(text).flat_map(|word| {
        let is_punctuation = |c: char| c.is_ascii_punctuation();
        let mut characters = word.chars();
        let (first, last) = (characters.next(), characters.next_back());
        let (one, other) = match (first, last) {
            (_, Some(last)) if is_punctuation(last) => word.split_at(word.len() - 1),
            (Some(first), Some(_)) if is_punctuation(first) => word.split_at(1),
            _ => (word, ""),
        };
        [one, other].into_iter().filter(|part| !part.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_punctuation_character_is_split_off_each_word() {
        let parts: Vec<&str> = words_and_punctuation("(hi) \"so\" ! 'x 漢。 -- a.").collect();
        assert_eq!(parts, ["(hi", ")", "\"so", "\"", "!", "'", "x", "漢。", "-", "-", "a", "."]);
    }

    #[test]
    fn empty_texts_score_zero() {
        let empty = [String::new()];
        assert_eq!(corpus_chrf(&empty, &[empty.to_vec()], &ChrfOptions::default()).score, 0.0);
    }
}
