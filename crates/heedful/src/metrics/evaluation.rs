//! The common interface of all metrics: sufficient statistics per sentence that can be summed, and a score
//! from the sums.

use std::fmt;
use std::sync::Mutex;

use heedful_tensor::cpu::threads::parallel;

use super::references::References;
use super::signature::{ReferenceCount, SACREBLEU_VERSION, Signature};
use super::significance::Confidence;

/// A metric that compares hypotheses with references.
pub trait Metric: Sync {
    /// The name that precedes the score: `BLEU`, `chrF2++`, `TER`.
    fn name(&self) -> String;

    /// The settings that the score depends on, with the names and in the order of the signature.
    fn settings(&self) -> Vec<(&'static str, String)>;

    /// The version of the implementation, the last field of the signature.
    fn version(&self) -> String {
        SACREBLEU_VERSION.to_owned()
    }

    /// The number of statistics per sentence.
    fn width(&self) -> usize;

    /// Writes the statistics of one sentence.
    fn measure(&self, hypothesis: &str, references: &[&str], statistics: &mut [f64]);

    /// The score for summed statistics, from 0 to 100; TER may exceed 100.
    fn score(&self, sums: &[f64]) -> f64;

    /// Details that are displayed after the score.
    fn detail(&self, _sums: &[f64]) -> Option<String> {
        None
    }
}

/// Hypotheses measured against their references by one metric.
pub struct Evaluation<'m> {
    metric: &'m dyn Metric,
    references: Vec<ReferenceCount>,
    count: ReferenceCount,
    /// A row of [`Metric::width`] values for each sentence.
    statistics: Vec<f64>,
}

/// Sentences per task: enough to amortise the overhead, few enough to balance the load.
const SENTENCES_PER_TASK: usize = 64;

impl<'m> Evaluation<'m> {
    /// Measures every sentence, on all threads.
    ///
    /// # Panics
    /// If the number of hypotheses differs from the number of sentences with references.
    pub fn new(metric: &'m dyn Metric, hypotheses: &[String], references: &References<'_>) -> Evaluation<'m> {
        let (ours, theirs) = (hypotheses.len(), references.len());
        assert_eq!(ours, theirs, "{}: {ours} hypotheses, references for {theirs} sentences", metric.name());
        let width = metric.width();
        let mut statistics = vec![0.0; ours * width];
        let tasks: Vec<_> = statistics.chunks_mut(SENTENCES_PER_TASK * width).map(Mutex::new).collect();
        parallel(tasks.len(), |task| {
            let mut rows = tasks[task].lock().expect("each task has its own rows");
            for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                let sentence = task * SENTENCES_PER_TASK + i;
                metric.measure(&hypotheses[sentence], references.of(sentence), row);
            }
        });
        drop(tasks);
        let of_sentence = |i| ReferenceCount::Fixed(references.of(i).len());
        let (references, count) = ((0..theirs).map(of_sentence).collect(), references.count());
        Evaluation { metric, references, count, statistics }
    }

    /// The score of the whole corpus.
    pub fn score(&self) -> MetricScore {
        self.score_of(&self.sums(), self.count)
    }

    /// The score of each sentence alone.
    pub fn sentences(&self) -> impl Iterator<Item = MetricScore> {
        self.rows().zip(&self.references).map(|(row, &count)| self.score_of(row, count))
    }

    pub(super) fn metric(&self) -> &'m dyn Metric {
        self.metric
    }

    pub(super) fn rows(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.statistics.chunks_exact(self.metric.width())
    }

    pub(super) fn row(&self, sentence: usize) -> &[f64] {
        let width = self.metric.width();
        &self.statistics[sentence * width..][..width]
    }

    pub(super) fn sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.metric.width()];
        for row in self.rows() {
            add(&mut sums, row);
        }
        sums
    }

    fn score_of(&self, sums: &[f64], references: ReferenceCount) -> MetricScore {
        let signature = Signature {
            references,
            resampling: None,
            settings: self.metric.settings(),
            version: self.metric.version(),
        };
        MetricScore {
            name: self.metric.name(),
            score: self.metric.score(sums),
            detail: self.metric.detail(sums),
            signature,
            confidence: None,
        }
    }
}

pub(super) fn add(sums: &mut [f64], row: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(row) {
        *sum += value;
    }
}

/// The score of a metric. Displayed with a precision (`{:.2}`), it is sacreBLEU's output line.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricScore {
    /// The name that precedes the score: `BLEU`, `chrF2++`, `TER`.
    pub name: String,
    /// From 0 to 100; TER may exceed 100.
    pub score: f64,
    /// BLEU's precisions and lengths.
    pub detail: Option<String>,
    /// Everything that the score depends on.
    pub signature: Signature,
    /// The confidence interval, if it was requested.
    pub confidence: Option<Confidence>,
}

impl fmt::Display for MetricScore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{}|{} = {:.digits$}", self.name, self.signature, self.score)?;
        if let Some(confidence) = &self.confidence {
            write!(f, " (μ = {:.digits$} ± {:.digits$})", confidence.mean, confidence.margin)?;
        }
        match &self.detail {
            Some(detail) => write!(f, " {detail}"),
            None => Ok(()),
        }
    }
}
