//! The worker of a classifier's lane: texts of all clients in one batch.

use heedful::explain::{ExplainOptions, Explanation};
use heedful::tasks::classify::{Classified, Classifier};

use super::in_flight::InFlight;
use super::worker::{Worker, WorkerOptions, catch_failure};
use super::{Detail, JobError, Outcome};

/// The most texts of a batch.
const BATCH_SIZE: usize = 64;
/// The most tokens of a batch of several texts: whoever comes while it is computed waits for no more than these.
const BATCH_TOKENS: usize = 1024;

/// Runs until the queue is closed and empty.
pub(super) fn run(
    classifier: &Classifier,
    worker: &Worker,
    options: &WorkerOptions,
    in_flight: &mut InFlight<'_>,
) {
    let mut last_batch = 1;
    while let Some(item) = worker.wait() {
        worker.wait_for(last_batch - 1, options.batch_wait);
        let mut tokens = item.input.tokens.len();
        let mut numbers = vec![in_flight.add(item)];
        while numbers.len() < BATCH_SIZE
            && tokens < BATCH_TOKENS
            && let Some(item) = worker.take()
        {
            tokens += item.input.tokens.len();
            numbers.push(in_flight.add(item));
        }
        in_flight.remove_cancelled();
        numbers.retain(|&number| in_flight.get(number).is_some());
        last_batch = numbers.len().max(1);
        in_flight.metrics.steps.add(1);
        in_flight.metrics.step_sentences.add(numbers.len() as u64);
        let texts: Vec<&str> = numbers
            .iter()
            .filter_map(|&number| in_flight.get(number))
            .map(|started| started.item.input.text.as_str())
            .collect();
        let batch = if texts.is_empty() {
            Ok(Vec::new())
        } else {
            worker.compute(in_flight.metrics, || classifier.classify(&texts, options.search.compute))
        };
        match batch {
            Ok(results) => {
                for (number, result) in numbers.into_iter().zip(results) {
                    explain(classifier, (number, result), worker, options, in_flight);
                }
            }
            // One of them cannot be read: classified one by one, only that one fails.
            Err(_) => {
                for number in numbers {
                    let Some(started) = in_flight.get(number) else { continue };
                    let text = started.item.input.text.as_str();
                    let result = worker
                        .compute(in_flight.metrics, || classifier.classify(&[text], options.search.compute));
                    match result {
                        Ok(mut results) => {
                            explain(classifier, (number, results.remove(0)), worker, options, in_flight);
                        }
                        Err(error) => {
                            finish(number, Err(JobError::InvalidInput(error.to_string())), in_flight);
                        }
                    }
                }
            }
        }
    }
}

/// Finishes a text that was classified, with its explanation if that was asked for.
fn explain(
    classifier: &Classifier,
    (number, classified): (usize, Classified),
    worker: &Worker,
    options: &WorkerOptions,
    in_flight: &mut InFlight<'_>,
) {
    let Some(started) = in_flight.get(number) else { return };
    let Detail::Explained { weights: form, scores, .. } = started.item.job.detail else {
        return finish(number, Ok(Outcome::Classified(classified, None)), in_flight);
    };
    let (input, job) = (&started.item.input, started.item.job.clone());
    let explaining = ExplainOptions { scores, ..ExplainOptions::new(form, &options.search) };
    let explain = || Explanation::of_class(classifier, &input.text, &input.tokens, 1, &explaining);
    let found = catch_failure(in_flight.metrics, || worker.compute(in_flight.metrics, explain));
    let found = found.and_then(|explanation| {
        job.count_weights(&explanation)?;
        Ok(Outcome::Classified(classified, Some(Box::new(explanation))))
    });
    finish(number, found, in_flight);
}

fn finish(number: usize, result: Result<Outcome, JobError>, in_flight: &mut InFlight<'_>) {
    let Some(started) = in_flight.get(number) else { return };
    in_flight.metrics.sentences.add(1);
    in_flight.metrics.source_tokens.add(started.item.input.tokens.len() as u64);
    match result {
        Ok(outcome) => in_flight.done(number, outcome),
        Err(error) => in_flight.fail(number, error),
    }
}
