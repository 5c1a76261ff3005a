//! BLEU (Papineni et al. 2002) as sacreBLEU computes it.
//!
//! ```text
//! BLEU = BP · exp(1/N Σ_{n=1..N} ln p_n)
//! p_n  = 100 · matching n-grams / n-grams of the hypothesis     summed over the corpus, smoothed if 0
//! BP   = exp(1 − len_ref / len_hyp) if the hypothesis is shorter, else 1
//! ```

use std::fmt;

use super::case::Case;
use super::evaluation::{Evaluation, Metric, MetricScore};
use super::ngrams::{Lexicon, NGrams};
use super::references::References;
use super::spaces::{trim_end, words};
use super::tokenize::BleuTokenizer;

/// How BLEU is computed. The default is sacreBLEU's.
#[derive(Clone, Debug, PartialEq)]
pub struct BleuOptions {
    /// The tokenizer.
    pub tokenize: BleuTokenizer,
    /// The smoothing of precisions without matches.
    pub smoothing: BleuSmoothing,
    /// Whether case matters.
    pub case: Case,
    /// Which n-gram orders are averaged.
    pub orders: Orders,
    /// The longest n-gram, `N`. The signature does not show it: standard BLEU always uses 4.
    pub max_order: usize,
}

impl Default for BleuOptions {
    fn default() -> BleuOptions {
        BleuOptions {
            tokenize: BleuTokenizer::V13a,
            smoothing: BleuSmoothing::Exponential,
            case: Case::Mixed,
            orders: Orders::All,
            max_order: 4,
        }
    }
}

impl BleuOptions {
    /// The options for sentence-level scores, which ignore orders longer than the sentence.
    pub fn for_sentences(self) -> BleuOptions {
        BleuOptions { orders: Orders::Effective, ..self }
    }
}

/// The smoothing of precisions without matching n-grams (Chen and Cherry 2014).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BleuSmoothing {
    /// No smoothing: the precision and BLEU are 0.
    None,
    /// This many matches instead of 0. The paper's value is [`Self::FLOOR`].
    Floor(f64),
    /// For n ≥ 2, this value is added to both the matches and the n-grams. The paper's value is
    /// [`Self::ADD_K`].
    AddK(f64),
    /// 1/2 match at the first order without matches, 1/4 at the second, and so on, as in NIST's
    /// `mteval-v13a`.
    Exponential,
}

impl BleuSmoothing {
    /// The usual value of [`Self::Floor`].
    pub const FLOOR: f64 = 0.1;
    /// The usual value of [`Self::AddK`].
    pub const ADD_K: f64 = 1.0;
}

impl fmt::Display for BleuSmoothing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BleuSmoothing::None => write!(f, "none"),
            BleuSmoothing::Floor(value) => write!(f, "floor[{value:.2}]"),
            BleuSmoothing::AddK(value) => write!(f, "add-k[{value:.2}]"),
            BleuSmoothing::Exponential => write!(f, "exp"),
        }
    }
}

/// Which n-gram orders are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orders {
    /// All orders, for corpora.
    All,
    /// The orders for which the hypothesis has an n-gram, for sentences.
    Effective,
}

/// BLEU and its components. Its `Display` is sacreBLEU's output line.
#[derive(Clone, Debug, PartialEq)]
pub struct Bleu {
    /// From 0 to 100.
    pub score: f64,
    /// `p_1 … p_N`, from 0 to 100.
    pub precisions: Vec<f64>,
    /// `BP`, from 0 to 1.
    pub brevity_penalty: f64,
    /// The number of tokens in the hypotheses.
    pub hypothesis_length: u64,
    /// The number of tokens in the references; for several references, the closest in length counts.
    pub reference_length: u64,
    /// The signature: everything that the score depends on.
    pub signature: String,
}

impl fmt::Display for Bleu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "BLEU|{} = {:.digits$} {}", self.signature, self.score, self.detail())
    }
}

impl Bleu {
    fn detail(&self) -> String {
        let precisions: Vec<String> = self.precisions.iter().map(|p| format!("{p:.1}")).collect();
        let (ours, theirs) = (self.hypothesis_length, self.reference_length);
        let ratio = if theirs == 0 { 0.0 } else { ours as f64 / theirs as f64 };
        format!(
            "{} (BP = {:.3} ratio = {ratio:.3} hyp_len = {ours} ref_len = {theirs})",
            precisions.join("/"),
            self.brevity_penalty
        )
    }
}

/// The BLEU of a corpus; `references[r][sentence]`.
///
/// # Panics
/// If there is no reference, or the numbers of sentences differ.
pub fn corpus_bleu(hypotheses: &[String], references: &[Vec<String>], options: &BleuOptions) -> Bleu {
    let evaluation = Evaluation::new(options, hypotheses, &References::new(references));
    let MetricScore { signature, .. } = evaluation.score();
    Bleu { signature: signature.to_string(), ..options.bleu_of(&evaluation.sums()) }
}

// The statistics of a sentence: its length, the closest reference length, matches per order, n-grams per
// order.
impl Metric for BleuOptions {
    fn name(&self) -> String {
        "BLEU".to_owned()
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let effective = match self.orders {
            Orders::All => "no",
            Orders::Effective => "yes",
        };
        vec![
            ("case", self.case.name().to_owned()),
            ("eff", effective.to_owned()),
            ("tok", self.tokenize.name().to_owned()),
            ("smooth", self.smoothing.to_string()),
        ]
    }

    fn width(&self) -> usize {
        2 + 2 * self.max_order
    }

    fn measure(&self, hypothesis: &str, references: &[&str], statistics: &mut [f64]) {
        count_matches(self.tokenize, self.case, hypothesis, references, statistics);
    }

    fn score(&self, sums: &[f64]) -> f64 {
        self.bleu_of(sums).score
    }

    fn detail(&self, sums: &[f64]) -> Option<String> {
        Some(self.bleu_of(sums).detail())
    }
}

impl BleuOptions {
    fn bleu_of(&self, sums: &[f64]) -> Bleu {
        let (ours, theirs) = (sums[0], sums[1]);
        let (matches, totals) = sums[2..].split_at(self.max_order);
        let brevity_penalty = brevity_penalty(ours, theirs);
        let (precisions, orders) = self.precisions(matches, totals);
        let score = if matches.iter().all(|&count| count == 0.0) {
            0.0
        } else {
            let logarithms: f64 = precisions[..orders].iter().map(|&p| floored_ln(p)).sum();
            brevity_penalty * (logarithms / orders as f64).exp()
        };
        Bleu {
            score,
            precisions,
            brevity_penalty,
            hypothesis_length: ours as u64,
            reference_length: theirs as u64,
            signature: String::new(),
        }
    }

    /// The smoothed precisions, and how many of them are averaged.
    fn precisions(&self, matches: &[f64], totals: &[f64]) -> (Vec<f64>, usize) {
        let mut precisions = vec![0.0; self.max_order];
        let mut orders = self.max_order;
        if matches.iter().all(|&count| count == 0.0) {
            return (precisions, orders);
        }
        let mut denominator = 1.0;
        for (n, precision) in precisions.iter_mut().enumerate() {
            let added = match self.smoothing {
                BleuSmoothing::AddK(k) if n > 0 => k,
                _ => 0.0,
            };
            let (matches, total) = (matches[n] + added, totals[n] + added);
            if total == 0.0 {
                break;
            }
            if self.orders == Orders::Effective {
                orders = n + 1;
            }
            *precision = match self.smoothing {
                _ if matches != 0.0 => 100.0 * matches / total,
                BleuSmoothing::Exponential => {
                    denominator *= 2.0;
                    100.0 / (denominator * total)
                }
                BleuSmoothing::Floor(value) => 100.0 * value / total,
                BleuSmoothing::None | BleuSmoothing::AddK(_) => 0.0,
            };
        }
        (precisions, orders)
    }
}

/// `exp(min(0, 1 − len_ref / len_hyp))`; 0 for an empty hypothesis, unless the reference is empty too.
pub(super) fn brevity_penalty(hypothesis: f64, reference: f64) -> f64 {
    if hypothesis >= reference {
        1.0
    } else if hypothesis > 0.0 {
        (1.0 - reference / hypothesis).exp()
    } else {
        0.0
    }
}

/// The logarithm, with a finite value at 0 that is low enough for a single precision of 0 to make BLEU 0.
fn floored_ln(x: f64) -> f64 {
    if x == 0.0 { -9_999_999_999.0 } else { x.ln() }
}

/// Writes the statistics of a sentence for BLEU: see the implementation of [`Metric`] for [`BleuOptions`].
pub(super) fn count_matches(
    tokenize: BleuTokenizer,
    case: Case,
    hypothesis: &str,
    references: &[&str],
    statistics: &mut [f64],
) {
    let prepare = |text: &str| tokenize.apply(trim_end(&case.apply(text)));
    let texts: Vec<String> =
        std::iter::once(&hypothesis).chain(references).map(|text| prepare(text)).collect();
    let mut lexicon = Lexicon::default();
    let sequences: Vec<Vec<u32>> =
        texts.iter().map(|text| words(text).map(|word| lexicon.id(word)).collect()).collect();
    let lengths = sequences[1..].iter().map(Vec::len);
    statistics[0] = sequences[0].len() as f64;
    statistics[1] = closest(sequences[0].len(), lengths) as f64;

    let orders = (statistics.len() - 2) / 2;
    let (matches, totals) = statistics[2..].split_at_mut(orders);
    let mut ngrams = NGrams::new(sequences.iter().map(Vec::as_slice).collect());
    for (matches, total) in matches.iter_mut().zip(totals) {
        ngrams.next_order();
        *matches = ngrams.matches(0, 1..sequences.len()) as f64;
        *total = ngrams.count(0) as f64;
    }
}

/// The reference length closest to that of the hypothesis; the shorter one in a tie.
fn closest(hypothesis: usize, references: impl Iterator<Item = usize>) -> usize {
    references.min_by_key(|&length| (hypothesis.abs_diff(length), length)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_equally_close_lengths_the_shorter_counts() {
        assert_eq!(closest(5, [7, 3, 9].into_iter()), 3);
        assert_eq!(closest(5, [9, 6].into_iter()), 6);
    }

    #[test]
    fn a_missing_order_makes_an_unsmoothed_score_zero() {
        let options = BleuOptions { smoothing: BleuSmoothing::None, ..BleuOptions::default() };
        let bleu = corpus_bleu(&["a b c".to_owned()], &[vec!["a b c".to_owned()]], &options);
        assert_eq!(bleu.score, 0.0);
        let bleu = corpus_bleu(&["a b c".to_owned()], &[vec!["a b c".to_owned()]], &options.for_sentences());
        assert!((bleu.score - 100.0).abs() < 1e-12);
    }

    #[test]
    fn an_empty_corpus_scores_zero() {
        assert_eq!(corpus_bleu(&[], &[vec![]], &BleuOptions::default()).score, 0.0);
    }
}
