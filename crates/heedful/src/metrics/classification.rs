//! Classification metrics from a confusion matrix.
//!
//! ```text
//! accuracy       correctly labelled texts / texts
//! precision_l    correct share of texts predicted as l   recall_l   correct share of texts labelled l
//! F1_l           2 · precision_l · recall_l / (precision_l + recall_l)
//! macro F1       mean of F1_l over the labels that occur, actual or predicted
//! weighted F1    mean of F1_l over the texts, with l the label of each text
//! ```
//!
//! 0 / 0 is 0, as in scikit-learn.

/// How often each label was predicted for each actual label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfusionMatrix {
    labels: usize,
    /// `counts[actual · labels + predicted]`.
    counts: Vec<u64>,
}

/// Precision, recall and F1 of one label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelScore {
    /// The correct share of the texts that were predicted to have the label.
    pub precision: f64,
    /// The correct share of the texts that have the label.
    pub recall: f64,
    /// Their harmonic mean.
    pub f1: f64,
    /// The number of texts that have the label.
    pub texts: u64,
}

impl ConfusionMatrix {
    /// An empty matrix.
    pub fn new(labels: usize) -> ConfusionMatrix {
        ConfusionMatrix { labels, counts: vec![0; labels * labels] }
    }

    /// Counts a text with the label `actual` that was predicted as `predicted`.
    ///
    /// # Panics
    /// If a label is out of range.
    pub fn add(&mut self, actual: u32, predicted: u32) {
        let (actual, predicted) = (actual as usize, predicted as usize);
        assert!(
            actual < self.labels && predicted < self.labels,
            "confusion: {actual} and {predicted} of {} labels",
            self.labels
        );
        self.counts[actual * self.labels + predicted] += 1;
    }

    /// The number of texts with the label `actual` that were predicted as `predicted`.
    pub fn count(&self, actual: usize, predicted: usize) -> u64 {
        self.counts[actual * self.labels + predicted]
    }

    /// The number of labels.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// The number of texts.
    pub fn texts(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The share of texts whose label was predicted correctly.
    pub fn accuracy(&self) -> f64 {
        ratio((0..self.labels).map(|label| self.count(label, label)).sum(), self.texts())
    }

    /// Precision, recall and F1 of one label.
    pub fn score(&self, label: usize) -> LabelScore {
        let correct = self.count(label, label);
        let texts = (0..self.labels).map(|predicted| self.count(label, predicted)).sum();
        let predicted = (0..self.labels).map(|actual| self.count(actual, label)).sum();
        LabelScore {
            precision: ratio(correct, predicted),
            recall: ratio(correct, texts),
            f1: ratio(2 * correct, texts + predicted),
            texts,
        }
    }

    /// The mean F1 over the labels that occur, actual or predicted: rare labels count as much as frequent
    /// ones.
    pub fn macro_f1(&self) -> f64 {
        let occurs = |label: &usize| {
            (0..self.labels).any(|other| self.count(*label, other) + self.count(other, *label) > 0)
        };
        let scores: Vec<f64> = (0..self.labels).filter(occurs).map(|label| self.score(label).f1).collect();
        if scores.is_empty() { 0.0 } else { scores.iter().sum::<f64>() / scores.len() as f64 }
    }

    /// The mean over the texts of the F1 of their label: frequent labels count most.
    pub fn weighted_f1(&self) -> f64 {
        let of_label = |label: usize| {
            let score = self.score(label);
            score.f1 * score.texts as f64
        };
        let sum = (0..self.labels).map(of_label).fold(0.0, |sum, score| sum + score);
        if self.texts() == 0 { 0.0 } else { sum / self.texts() as f64 }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_match_scikit_learn() {
        // f1_score([0, 1, 2, 2, 0, 1], [0, 2, 1, 2, 0, 0], average="macro") = 0.43333…
        let mut confusion = ConfusionMatrix::new(4);
        for (actual, predicted) in [(0, 0), (1, 2), (2, 1), (2, 2), (0, 0), (1, 0)] {
            confusion.add(actual, predicted);
        }
        assert_eq!(confusion.texts(), 6);
        assert!((confusion.accuracy() - 0.5).abs() < 1e-12);
        let first = confusion.score(0);
        assert!((first.precision - 2.0 / 3.0).abs() < 1e-12 && first.recall == 1.0 && first.texts == 2);
        assert!((confusion.macro_f1() - (0.8 + 0.0 + 0.5) / 3.0).abs() < 1e-12);
    }

    #[test]
    fn an_empty_matrix_scores_zero() {
        let confusion = ConfusionMatrix::new(2);
        assert_eq!((confusion.accuracy(), confusion.macro_f1()), (0.0, 0.0));
    }
}
