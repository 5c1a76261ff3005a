//! The worker of a lane of a classifier: texts of all clients in one batch.

use heedful::decode::DecodeError;
use heedful::decode::SentenceId;
use heedful::explain::{ExplainOptions, Explanation};
use heedful::tasks::classify::{Classified, Classifier};

use super::in_flight::{InFlight, StartedItem};
use super::worker::{Worker, WorkerOptions, catch_failure};
use super::{Detail, JobError, Outcome};

/// The maximum texts of a batch.
const BATCH_SIZE: usize = 64;
/// The maximum tokens of a batch of several texts, which bounds how long later texts wait for it.
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
        let (mut tokens, mut next) = (0, Some(item));
        while let Some(item) = next {
            tokens += item.input.tokens.len();
            in_flight.add(SentenceId(in_flight.len()), item);
            let has_room = in_flight.len() < BATCH_SIZE && tokens < BATCH_TOKENS;
            next = if has_room { worker.take() } else { None };
        }
        in_flight.remove_cancelled();
        let ids = in_flight.ids();
        last_batch = ids.len().max(1);
        in_flight.metrics.steps.add(1);
        in_flight.metrics.step_sentences.add(ids.len() as u64);
        let texts: Vec<&str> = ids
            .iter()
            .filter_map(|&id| in_flight.get(id))
            .map(|started| started.item.input.text.as_str())
            .collect();
        if texts.is_empty() {
            continue;
        }
        let classify = |texts: &[&str]| {
            let batch = || classifier.classify(texts);
            worker.compute(in_flight.metrics, batch).map_err(|error| match error.cause() {
                Some(DecodeError::OutOfMemory(_)) => JobError::Internal(error.to_string()),
                _ => JobError::InvalidInput(error.to_string()),
            })
        };
        let results: Vec<Result<Classified, JobError>> = match classify(&texts) {
            Ok(results) => results.into_iter().map(Ok).collect(),
            // A text is invalid, or the batch does not fit into memory: classified one by one, only that text
            // fails.
            Err(_) => texts.iter().map(|text| classify(&[text]).map(|mut one| one.remove(0))).collect(),
        };
        for (id, result) in ids.into_iter().zip(results) {
            let Some(started) = in_flight.get(id) else { continue };
            in_flight.metrics.sentences.add(1);
            in_flight.metrics.source_tokens.add(started.item.input.tokens.len() as u64);
            let result =
                result.and_then(|found| outcome(classifier, (started, found), worker, options, in_flight));
            in_flight.finish(id, result);
        }
    }
}

/// A classified text, with its explanation if requested.
fn outcome(
    classifier: &Classifier,
    (started, classified): (&StartedItem, Classified),
    worker: &Worker,
    options: &WorkerOptions,
    in_flight: &InFlight<'_>,
) -> Result<Outcome, JobError> {
    let (input, job) = (&started.item.input, &started.item.job);
    let Detail::Explained { weights: form, scores, .. } = job.detail else {
        return Ok(Outcome::Classified(classified, None));
    };
    let explaining = ExplainOptions { scores, ..ExplainOptions::new(form, &options.search) };
    let explain = || Explanation::of_class(classifier, &input.text, &input.tokens, 1, &explaining);
    let explanation = catch_failure(in_flight.metrics, || worker.compute(in_flight.metrics, explain))?;
    job.count_weights(&explanation)?;
    Ok(Outcome::Classified(classified, Some(Box::new(explanation))))
}
