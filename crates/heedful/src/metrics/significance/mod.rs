//! Confidence intervals of scores, and significance tests for differences between systems.
//!
//! These are sacreBLEU's three procedures. The random generator is NumPy's, so a seed draws the same
//! sentences as in sacreBLEU. sacreBLEU sums and scores resamples in f32, heedful in f64, so the last printed
//! digit may differ.

mod generator;

use super::evaluation::{Evaluation, MetricScore, add};
use super::signature::Resampling;
use generator::Generator;

/// The default seed of sacreBLEU.
pub const SACREBLEU_SEED: u64 = 12345;

/// The confidence interval of a score by bootstrap resampling (Koehn 2004): corpora of the same size are
/// sampled from the corpus with replacement and scored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence {
    /// The mean score of the resampled corpora.
    pub mean: f64,
    /// Half the width of the 95 % interval.
    pub margin: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// The number of resampled corpora.
    pub resamples: usize,
    /// The seed of the draws.
    pub seed: u64,
}

/// The comparison of two systems on the same sentences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// The first system's score.
    pub baseline: f64,
    /// The second system's score.
    pub other: f64,
    /// The p-value of the difference by paired bootstrap resampling: both systems are scored on the same
    /// resampled corpora.
    pub bootstrap_p: f64,
    /// The p-value by approximate randomisation: the outputs of each sentence are swapped at random.
    pub randomisation_p: f64,
    /// The number of samples and trials, and the seed.
    pub resampling: Resampling,
}

impl Evaluation<'_> {
    /// Computes a confidence interval by resampling the corpus.
    ///
    /// # Panics
    /// If there is no sentence, or `resamples` is 0.
    pub fn confidence(&self, resamples: usize, seed: u64) -> Confidence {
        let mut scores = Vec::with_capacity(resamples);
        for_each_resample(self.rows().len(), resamples, seed, |sentences| {
            scores.push(self.resampled(sentences));
        });
        scores.sort_by(f64::total_cmp);
        let outside = resamples / 40;
        let (low, high) = (scores[outside], scores[resamples - 1 - outside]);
        let mean = mean(&scores);
        Confidence { mean, margin: 0.5 * (high - low), low, high, resamples, seed }
    }

    /// The score of the corpus with a [`Confidence`], and a signature that includes it.
    ///
    /// # Panics
    /// See [`Self::confidence`].
    pub fn score_with_confidence(&self, resamples: usize, seed: u64) -> MetricScore {
        let mut score = self.score();
        score.confidence = Some(self.confidence(resamples, seed));
        score.signature.resampling =
            Some(Resampling { bootstrap: Some(resamples), randomisation: None, seed });
        score
    }

    /// Compares two systems; `self` is the baseline. A procedure that is `None` in `resampling` is skipped,
    /// and its p-value is 1.
    ///
    /// # Panics
    /// If the metrics or the numbers of sentences differ, or there is no sentence.
    pub fn compare(&self, other: &Evaluation<'_>, resampling: Resampling) -> Comparison {
        let (ours, theirs) = (self.rows().len(), other.rows().len());
        assert_eq!(ours, theirs, "compare: one system has {ours} sentences, the other {theirs}");
        assert_eq!(self.metric().settings(), other.metric().settings(), "compare: different metrics");
        let (baseline, score) = (self.score().score, other.score().score);
        let difference = (baseline - score).abs();
        let p = |trials: Option<usize>, test: &dyn Fn(usize) -> Vec<f64>| {
            trials.map_or(1.0, |trials| p_value(&test(trials), difference))
        };
        Comparison {
            baseline,
            other: score,
            bootstrap_p: p(resampling.bootstrap, &|n| {
                self.bootstrapped_differences(other, n, resampling.seed)
            }),
            randomisation_p: p(resampling.randomisation, &|n| {
                self.shuffled_differences(other, n, resampling.seed)
            }),
            resampling,
        }
    }

    fn resampled(&self, sentences: &[usize]) -> f64 {
        let mut sums = vec![0.0; self.metric().width()];
        for &sentence in sentences {
            add(&mut sums, self.row(sentence));
        }
        self.metric().score(&sums)
    }

    /// The absolute differences on resampled corpora minus their mean: the distribution under the null
    /// hypothesis.
    fn bootstrapped_differences(&self, other: &Evaluation<'_>, resamples: usize, seed: u64) -> Vec<f64> {
        let mut differences = Vec::with_capacity(resamples);
        for_each_resample(self.rows().len(), resamples, seed, |sentences| {
            differences.push((other.resampled(sentences) - self.resampled(sentences)).abs());
        });
        let mean = mean(&differences);
        differences.iter().map(|difference| difference - mean).collect()
    }

    /// The differences after swapping outputs between the systems at random.
    fn shuffled_differences(&self, other: &Evaluation<'_>, trials: usize, seed: u64) -> Vec<f64> {
        let mut generator = Generator::new(seed);
        let mut bits = generator.bits();
        let (ours, theirs) = (self.sums(), other.sums());
        let mut differences = Vec::with_capacity(trials);
        for _ in 0..trials {
            // One shuffled system takes this system's row where the bit is set; the other one takes the
            // remaining row.
            let mut gain = vec![0.0; ours.len()];
            for (our_row, their_row) in self.rows().zip(other.rows()) {
                let weight = f64::from(bits.next_bit());
                for (gain, (a, b)) in gain.iter_mut().zip(our_row.iter().zip(their_row)) {
                    *gain += weight * (a - b);
                }
            }
            let first: Vec<f64> = theirs.iter().zip(&gain).map(|(sum, gain)| sum + gain).collect();
            let second: Vec<f64> = ours.iter().zip(&gain).map(|(sum, gain)| sum - gain).collect();
            differences.push((self.metric().score(&first) - self.metric().score(&second)).abs());
        }
        differences
    }
}

/// Calls `act` with `resamples` lists of sentence indices, each as long as the corpus and drawn with
/// replacement.
fn for_each_resample(sentences: usize, resamples: usize, seed: u64, mut act: impl FnMut(&[usize])) {
    assert!(sentences > 0, "resampling: there is no sentence to draw");
    let mut generator = Generator::new(seed);
    let mut drawn = vec![0; sentences];
    for _ in 0..resamples {
        for index in &mut drawn {
            *index = generator.below(sentences);
        }
        act(&drawn);
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The share of `differences` larger than the `observed` one, which counts as one of them.
fn p_value(differences: &[f64], observed: f64) -> f64 {
    let larger = differences.iter().filter(|&&difference| difference > observed).count();
    (larger + 1) as f64 / (differences.len() + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::{BleuOptions, References, TerOptions};
    use super::*;

    /// Sentences of 10 words in which about `wrong` words are wrong, at positions that vary.
    fn system(sentences: usize, wrong: usize) -> Vec<String> {
        let word = |sentence: usize, index: usize| {
            let error = (index * 7 + sentence * 3) % 10 < wrong && !(sentence + index).is_multiple_of(3);
            if error { "wrong".to_owned() } else { format!("word{}", (sentence * 31 + index * 17) % 97) }
        };
        (0..sentences).map(|i| (0..10).map(|j| word(i, j)).collect::<Vec<_>>().join(" ")).collect()
    }

    const RESAMPLING: Resampling =
        Resampling { bootstrap: Some(300), randomisation: Some(600), seed: SACREBLEU_SEED };

    #[test]
    fn the_interval_contains_the_score_and_narrows_with_more_sentences() {
        let margin = |sentences: usize| {
            let references = [system(sentences, 0)];
            let options = BleuOptions::default();
            let evaluation = Evaluation::new(&options, &system(sentences, 3), &References::new(&references));
            let (score, confidence) = (evaluation.score().score, evaluation.confidence(1000, 1));
            assert!(confidence.low < score && score < confidence.high);
            assert!((confidence.mean - score).abs() < confidence.margin);
            assert_eq!(confidence, evaluation.confidence(1000, 1));
            confidence.margin
        };
        // The margin shrinks with the square root of the number of sentences.
        let ratio = margin(50) / margin(800);
        assert!((2.5..6.5).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_clear_difference_is_significant() {
        let references = [system(200, 0)];
        let references = References::new(&references);
        let options = TerOptions::default();
        let good = Evaluation::new(&options, &system(200, 1), &references);
        let bad = Evaluation::new(&options, &system(200, 5), &references);
        let comparison = good.compare(&bad, RESAMPLING);
        assert!(comparison.baseline < comparison.other);
        assert_eq!((comparison.bootstrap_p, comparison.randomisation_p), (1.0 / 301.0, 1.0 / 601.0));
        let same = good.compare(&good, RESAMPLING);
        // No difference is larger than 0, so the p-value is small: sacreBLEU reports the same.
        assert_eq!((same.bootstrap_p, same.randomisation_p), (1.0 / 301.0, 1.0 / 601.0));
    }

    #[test]
    fn a_difference_by_chance_is_not_significant() {
        // Two systems of equal quality: the second makes the first one's errors one sentence later.
        let references = [(0..400).map(|_| "a b c d e f g h".to_owned()).collect::<Vec<_>>()];
        let references = References::new(&references);
        let make = |shift: usize| -> Vec<String> {
            let text =
                |i: usize| if (i + shift).is_multiple_of(3) { "a b x d e f g h" } else { "a b c d e f g h" };
            (0..400).map(|i| text(i).to_owned()).collect()
        };
        let options = TerOptions::default();
        let one = Evaluation::new(&options, &make(0), &references);
        let other = Evaluation::new(&options, &make(1), &references);
        let comparison = one.compare(&other, RESAMPLING);
        assert!(comparison.randomisation_p > 0.5, "{comparison:?}");
        assert!(comparison.bootstrap_p > 0.2, "{comparison:?}");
    }
}
