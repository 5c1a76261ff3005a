//! Early stopping: keeps the best validation and decides when to stop.

use std::cmp::Ordering;

use serde::{Deserialize, Deserializer, Serialize};

use crate::recipe::BestBy;

/// The result of one validation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationScore {
    /// The metric.
    pub metric: BestBy,
    /// Its value.
    #[serde(deserialize_with = "number_or_nan")]
    pub value: f64,
}

/// The best validation, and the number of validations since.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Patience {
    /// The best validation so far.
    pub best: Option<ValidationScore>,
    /// The step of the best validation.
    pub best_step: u64,
    /// Number of validations since then.
    pub since: u64,
}

/// The consequence of a validation for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The best so far.
    Best,
    /// Not the best; the run continues.
    Worse,
    /// No improvement for too long: the run ends.
    Stop,
}

impl ValidationScore {
    /// `Greater` is better. Scores of different metrics have no meaningful order; NaN is worse than any other
    /// value.
    pub fn compare(&self, other: &ValidationScore) -> Ordering {
        let goodness = |score: &ValidationScore| match score.metric {
            _ if score.value.is_nan() => f64::NEG_INFINITY,
            BestBy::Loss => -score.value,
            BestBy::Bleu | BestBy::Accuracy => score.value,
        };
        goodness(self).total_cmp(&goodness(other))
    }
}

impl Patience {
    /// Records a validation. `limit` is the number of validations without improvement after which to stop.
    pub fn update(&mut self, step: u64, score: ValidationScore, limit: Option<u64>) -> Verdict {
        if self.best.is_none_or(|best| score.compare(&best) == Ordering::Greater) {
            *self = Patience { best: Some(score), best_step: step, since: 0 };
            return Verdict::Best;
        }
        self.since += 1;
        if limit.is_some_and(|limit| self.since >= limit) { Verdict::Stop } else { Verdict::Worse }
    }
}

/// JSON writes NaN as null.
fn number_or_nan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_after_its_number_of_validations_without_improvement() {
        let mut patience = Patience::default();
        let losses = [5.0, 4.0, 4.0, 3.9, 4.1, 4.0, f64::NAN, 3.8];
        let verdicts: Vec<Verdict> = losses
            .iter()
            .zip(1..)
            .map(|(&value, step)| {
                patience.update(step, ValidationScore { metric: BestBy::Loss, value }, Some(3))
            })
            .collect();
        use Verdict::{Best, Stop, Worse};
        assert_eq!(verdicts, [Best, Best, Worse, Best, Worse, Worse, Stop, Best]);
        assert_eq!(patience.best_step, 8);
    }

    #[test]
    fn more_bleu_is_better() {
        let mut patience = Patience::default();
        let bleu = |value| ValidationScore { metric: BestBy::Bleu, value };
        assert_eq!(patience.update(1, bleu(20.0), None), Verdict::Best);
        assert_eq!(patience.update(2, bleu(19.0), None), Verdict::Worse);
        assert_eq!(patience.update(3, bleu(21.0), None), Verdict::Best);
    }
}
