//! The simplified BLEU of textbooks. It has a different name because its scores are not comparable with BLEU.
//!
//! ```text
//! exp(min(0, 1 − len_ref / len_hyp)) · Π_{n=1..k} p_n^(1 / 2^n)
//! ```
//!
//! Longer n-grams have smaller weights, there is no smoothing, and orders longer than the hypothesis are
//! skipped. For a corpus, matches, n-grams and lengths are summed first, as in BLEU.

use super::bleu::{brevity_penalty, count_matches};
use super::case::Case;
use super::evaluation::{Evaluation, Metric, MetricScore};
use super::references::References;
use super::tokenize::BleuTokenizer;

/// Options of the simplified BLEU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeachingOptions {
    /// The tokenizer.
    pub tokenize: BleuTokenizer,
    /// Whether case matters.
    pub case: Case,
    /// The longest n-gram, `k`.
    pub max_order: usize,
}

impl Default for TeachingOptions {
    fn default() -> TeachingOptions {
        TeachingOptions { tokenize: BleuTokenizer::V13a, case: Case::Mixed, max_order: 4 }
    }
}

/// The simplified BLEU of a corpus, from 0 to 100; `references[r][sentence]`.
///
/// # Panics
/// If there is no reference, or the numbers of sentences differ.
pub fn corpus_teaching_bleu(
    hypotheses: &[String],
    references: &[Vec<String>],
    options: &TeachingOptions,
) -> MetricScore {
    Evaluation::new(options, hypotheses, &References::new(references)).score()
}

impl Metric for TeachingOptions {
    fn name(&self) -> String {
        "BLEU-teaching".to_owned()
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("case", self.case.name().to_owned()),
            ("tok", self.tokenize.name().to_owned()),
            ("order", self.max_order.to_string()),
        ]
    }

    fn version(&self) -> String {
        concat!("heedful-", env!("CARGO_PKG_VERSION")).to_owned()
    }

    fn width(&self) -> usize {
        2 + 2 * self.max_order
    }

    fn measure(&self, hypothesis: &str, references: &[&str], statistics: &mut [f64]) {
        count_matches(self.tokenize, self.case, hypothesis, references, statistics);
    }

    fn score(&self, sums: &[f64]) -> f64 {
        if sums[0] == 0.0 {
            return 0.0;
        }
        let (matches, totals) = sums[2..].split_at(self.max_order);
        let mut product = 1.0;
        let mut exponent = 1.0;
        for (matches, total) in matches.iter().zip(totals) {
            exponent /= 2.0;
            if *total > 0.0 {
                product *= (matches / total).powf(exponent);
            }
        }
        100.0 * brevity_penalty(sums[0], sums[1]) * product
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(hypothesis: &str, reference: &str, max_order: usize) -> f64 {
        let options = TeachingOptions { max_order, ..TeachingOptions::default() };
        corpus_teaching_bleu(&[hypothesis.to_owned()], &[vec![reference.to_owned()]], &options).score
    }

    #[test]
    fn scores_match_the_formula_computed_by_hand() {
        // p_1 = 4/5, p_2 = 3/4, p_3 = 1/3, p_4 = 0; the lengths are 5 and 6.
        let brevity = (1.0_f64 - 6.0 / 5.0).exp();
        let (hypothesis, reference) = ("a b b c d", "a b c d e f");
        let expected = 100.0 * brevity * 0.8_f64.sqrt() * 0.75_f64.powf(0.25);
        assert!((score(hypothesis, reference, 2) - expected).abs() < 1e-12);
        let expected = expected * (1.0_f64 / 3.0).powf(0.125);
        assert!((score(hypothesis, reference, 3) - expected).abs() < 1e-12);
        assert_eq!(score(hypothesis, reference, 4), 0.0);
    }

    #[test]
    fn a_perfect_sentence_shorter_than_k_scores_100() {
        assert_eq!(score("good morning", "good morning", 4), 100.0);
        assert_eq!(score("", "good morning", 4), 0.0);
    }
}
