//! Translation edit rate (Snover et al. 2006) as sacreBLEU computes it, after Tercom.
//!
//! ```text
//! TER = 100 · edits / words of the reference
//! ```
//!
//! An edit inserts, deletes or replaces a word, or shifts a phrase. Shifts are found by a greedy search with
//! limits; the scores depend on the limits, so this implementation uses sacreBLEU's.

mod edit_distance;
mod shift;

use super::case::Case;
use super::evaluation::{Evaluation, Metric, MetricScore};
use super::ngrams::Lexicon;
use super::references::References;
use super::spaces::{trim_end, words};
use super::tokenize::tercom::Tercom;
pub use super::tokenize::tercom::{AsianText, Punctuation, TercomNormalization};

/// How TER is computed. The default is sacreBLEU's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerOptions {
    /// Whether text is tokenized.
    pub normalization: TercomNormalization,
    /// How punctuation is treated.
    pub punctuation: Punctuation,
    /// How East Asian characters are treated.
    pub asian: AsianText,
    /// Whether case matters; by default it does not.
    pub case: Case,
}

impl Default for TerOptions {
    fn default() -> TerOptions {
        TerOptions {
            normalization: TercomNormalization::Off,
            punctuation: Punctuation::Kept,
            asian: AsianText::Plain,
            case: Case::Lower,
        }
    }
}

/// The TER of a corpus; `references[r][sentence]`. Lower is better.
///
/// # Panics
/// If there is no reference, or the numbers of sentences differ.
pub fn corpus_ter(hypotheses: &[String], references: &[Vec<String>], options: &TerOptions) -> MetricScore {
    Evaluation::new(options, hypotheses, &References::new(references)).score()
}

// The statistics of a sentence: the number of edits to the closest reference, and the mean reference length.
impl Metric for TerOptions {
    fn name(&self) -> String {
        "TER".to_owned()
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let yes_no = |condition: bool| if condition { "yes" } else { "no" }.to_owned();
        vec![
            ("case", self.case.name().to_owned()),
            ("tok", "tercom".to_owned()),
            ("norm", yes_no(self.normalization == TercomNormalization::On)),
            ("punct", yes_no(self.punctuation == Punctuation::Kept)),
            ("asian", yes_no(self.asian == AsianText::Split)),
        ]
    }

    fn width(&self) -> usize {
        2
    }

    fn measure(&self, hypothesis: &str, references: &[&str], statistics: &mut [f64]) {
        let tercom = Tercom {
            normalization: self.normalization,
            punctuation: self.punctuation,
            asian: self.asian,
            case: self.case,
        };
        let hypothesis = tercom.apply(trim_end(hypothesis));
        // sacreBLEU tokenizes references twice. The second pass may split more (`a.,5`), which affects
        // scores.
        let tokenize_twice = |text: &&str| {
            let once = tercom.apply(trim_end(text));
            let once: Vec<&str> = words(&once).collect();
            tercom.apply(&once.join(" "))
        };
        let references: Vec<String> = references.iter().map(tokenize_twice).collect();

        let mut lexicon = Lexicon::default();
        let hypothesis: Vec<u32> = words(&hypothesis).map(|word| lexicon.id(word)).collect();
        let (mut fewest, mut length) = (usize::MAX, 0);
        for reference in &references {
            let reference: Vec<u32> = words(reference).map(|word| lexicon.id(word)).collect();
            fewest = fewest.min(shift::edits(&hypothesis, &reference));
            length += reference.len();
        }
        statistics[0] = fewest as f64;
        statistics[1] = length as f64 / references.len() as f64;
    }

    fn score(&self, sums: &[f64]) -> f64 {
        let (edits, length) = (sums[0], sums[1]);
        if length > 0.0 {
            // This order of operations reproduces sacreBLEU's last digits.
            100.0 * (edits / length)
        } else if edits > 0.0 {
            100.0
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(hypothesis: &str, reference: &str) -> f64 {
        corpus_ter(&[hypothesis.to_owned()], &[vec![reference.to_owned()]], &TerOptions::default()).score
    }

    #[test]
    fn a_shifted_phrase_is_one_edit() {
        assert_eq!(score("d e a b c", "a b c d e"), 20.0);
        assert_eq!(score("a b x d", "a b c d"), 25.0);
    }

    #[test]
    fn empty_sentences_have_a_score() {
        assert_eq!(score("", ""), 0.0);
        assert_eq!(score("a b", ""), 100.0);
        assert_eq!(score("", "a b"), 100.0);
    }
}
