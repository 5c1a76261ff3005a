//! The worker of a classifier's lane: texts of all clients in one batch.

use heedful::tasks::classify::{Classified, Classifier};

use super::in_flight::InFlight;
use super::lanes::Lane;
use super::queue::Queue;
use super::worker::WorkerOptions;
use super::{JobError, Outcome};

/// The most texts of a batch.
const BATCH_SIZE: usize = 64;
/// The most tokens of a batch of several texts: whoever comes while it is computed waits for no more than these.
const BATCH_TOKENS: usize = 1024;

/// Runs until the queue is closed and empty.
pub(super) fn run(
    classifier: &Classifier,
    (queue, lane): (&Queue, Lane),
    options: &WorkerOptions,
    in_flight: &mut InFlight<'_>,
) {
    let mut last_batch = 1;
    while let Some(item) = queue.wait(lane) {
        queue.wait_for(lane, last_batch - 1, options.batch_wait);
        let mut tokens = item.input.tokens.len();
        let mut numbers = vec![in_flight.add(item)];
        while numbers.len() < BATCH_SIZE
            && tokens < BATCH_TOKENS
            && let Some(item) = queue.take(lane)
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
            lane.compute(|| classifier.classify(&texts, options.search.compute))
        };
        match batch {
            Ok(results) => {
                for (number, result) in numbers.into_iter().zip(results) {
                    finish(number, Ok(result), in_flight);
                }
            }
            // One of them cannot be read: classified one by one, only that one fails.
            Err(_) => {
                for number in numbers {
                    let Some(started) = in_flight.get(number) else { continue };
                    let text = started.item.input.text.as_str();
                    let result = lane.compute(|| classifier.classify(&[text], options.search.compute));
                    let result =
                        result.map(|mut results| results.remove(0)).map_err(|error| error.to_string());
                    finish(number, result, in_flight);
                }
            }
        }
    }
}

fn finish(number: usize, result: Result<Classified, String>, in_flight: &mut InFlight<'_>) {
    let Some(started) = in_flight.get(number) else { return };
    in_flight.metrics.sentences.add(1);
    in_flight.metrics.source_tokens.add(started.item.input.tokens.len() as u64);
    match result {
        Ok(classified) => in_flight.done(number, Outcome::Classified(classified)),
        Err(message) => in_flight.fail(number, JobError::InvalidInput(message)),
    }
}
