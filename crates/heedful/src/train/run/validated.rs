//! Converts a validation result to a score and to a line of the log.

use crate::metrics::Measure;
use crate::recipe::BestBy;
use crate::tasks::validation::ValidationResult;
use crate::train::ValidationScore;
use crate::train::log::Record;

/// The score of a validation. If BLEU was not computed, the loss is used instead.
pub(super) fn score(result: &ValidationResult, metric: BestBy) -> ValidationScore {
    match (metric, result.value(Measure::ValidBleu)) {
        (BestBy::Bleu, Some(value)) => ValidationScore { metric, value },
        (BestBy::Accuracy, _) => ValidationScore { metric, value: result.held_out.accuracy() },
        (BestBy::Loss, _) | (BestBy::Bleu, None) => {
            ValidationScore { metric: BestBy::Loss, value: result.held_out.loss() }
        }
    }
}

/// The line of the log.
pub(super) fn record_of(result: ValidationResult, step: u64, seconds: f64) -> Record {
    let ValidationResult { held_out, measures, samples, .. } = result;
    let record = Record::new(step, seconds)
        .with(Measure::ValidLoss, held_out.loss())
        .with(Measure::ValidPerplexity, held_out.perplexity())
        .with(Measure::ValidAccuracy, held_out.accuracy());
    let record = measures.into_iter().fold(record, |record, (measure, value)| record.with(measure, value));
    Record { samples, ..record }
}
