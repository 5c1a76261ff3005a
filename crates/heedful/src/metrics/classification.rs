//! How good are the labels? Counts of what was meant and what was said.
//!
//! ```text
//! accuracy       texts with the right label / texts
//! precision_l    right among those that were said to be l         recall_l   right among those that are l
//! F1_l           2 · precision_l · recall_l / (precision_l + recall_l)
//! macro F1       mean of F1_l over the labels that were meant or said
//! ```
//!
//! A ratio of nothing to nothing is 0, as in scikit-learn.

/// How often each label was said for each label that was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    labels: usize,
    /// `counts[meant · labels + said]`.
    counts: Vec<u64>,
}

/// How well one label is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LabelScore {
    /// Right among those that were said to have it.
    pub precision: f64,
    /// Right among those that have it.
    pub recall: f64,
    /// Their harmonic mean.
    pub f1: f64,
    /// How many texts have it.
    pub texts: u64,
}

impl Confusion {
    /// Nothing counted yet.
    pub fn new(labels: usize) -> Confusion {
        Confusion { labels, counts: vec![0; labels * labels] }
    }

    /// Counts a text that has the label `meant` and was said to have the label `said`.
    ///
    /// # Panics
    /// If there is no such label.
    pub fn add(&mut self, meant: u32, said: u32) {
        let (meant, said) = (meant as usize, said as usize);
        assert!(
            meant < self.labels && said < self.labels,
            "confusion: {meant} and {said} of {} labels",
            self.labels
        );
        self.counts[meant * self.labels + said] += 1;
    }

    /// How many texts with the label `meant` were said to have the label `said`.
    pub fn count(&self, meant: usize, said: usize) -> u64 {
        self.counts[meant * self.labels + said]
    }

    /// How many labels there are.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// How many texts were counted.
    pub fn texts(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The share of texts whose label was told.
    pub fn accuracy(&self) -> f64 {
        ratio((0..self.labels).map(|label| self.count(label, label)).sum(), self.texts())
    }

    /// How well one label is told.
    pub fn score(&self, label: usize) -> LabelScore {
        let right = self.count(label, label);
        let texts = (0..self.labels).map(|said| self.count(label, said)).sum();
        let said = (0..self.labels).map(|meant| self.count(meant, label)).sum();
        LabelScore {
            precision: ratio(right, said),
            recall: ratio(right, texts),
            f1: ratio(2 * right, texts + said),
            texts,
        }
    }

    /// The mean of F1 over the labels that were meant or said at least once: rare labels count as much as frequent ones.
    pub fn macro_f1(&self) -> f64 {
        let seen = |label: &usize| {
            (0..self.labels).any(|other| self.count(*label, other) + self.count(other, *label) > 0)
        };
        let scores: Vec<f64> = (0..self.labels).filter(seen).map(|label| self.score(label).f1).collect();
        if scores.is_empty() { 0.0 } else { scores.iter().sum::<f64>() / scores.len() as f64 }
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_those_of_scikit_learn() {
        // f1_score([0, 1, 2, 2, 0, 1], [0, 2, 1, 2, 0, 0], average="macro") = 0.43333…
        let mut confusion = Confusion::new(4);
        for (meant, said) in [(0, 0), (1, 2), (2, 1), (2, 2), (0, 0), (1, 0)] {
            confusion.add(meant, said);
        }
        assert_eq!(confusion.texts(), 6);
        assert!((confusion.accuracy() - 0.5).abs() < 1e-12);
        let first = confusion.score(0);
        assert!((first.precision - 2.0 / 3.0).abs() < 1e-12 && first.recall == 1.0 && first.texts == 2);
        assert!((confusion.macro_f1() - (0.8 + 0.0 + 0.5) / 3.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_no_success() {
        let confusion = Confusion::new(2);
        assert_eq!((confusion.accuracy(), confusion.macro_f1()), (0.0, 0.0));
    }
}
