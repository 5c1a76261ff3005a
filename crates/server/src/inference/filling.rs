//! The worker of a lane of a masked language model: one text after the other.

use heedful::decode::SentenceId;
use heedful::explain::{ExplainOptions, Explanation};
use heedful::tasks::masked::{Filled, Filler};

use super::in_flight::{InFlight, StartedItem};
use super::worker::{Worker, WorkerOptions, catch_failure};
use super::{Detail, Outcome};

/// Runs until the queue is closed and empty.
pub(super) fn run(filler: &Filler, worker: &Worker, options: &WorkerOptions, in_flight: &mut InFlight<'_>) {
    while let Some(item) = worker.wait() {
        let id = SentenceId(0);
        in_flight.add(id, item);
        in_flight.remove_cancelled();
        let Some(started) = in_flight.get(id) else { continue };
        in_flight.metrics.steps.add(1);
        in_flight.metrics.step_sentences.add(1);
        in_flight.metrics.sentences.add(1);
        in_flight.metrics.source_tokens.add(started.item.input.tokens.len() as u64);
        let filled = catch_failure(in_flight.metrics, || {
            worker.compute(in_flight.metrics, || fill(filler, started, options))
        });
        let counted = filled.and_then(|(filled, explanation)| {
            explanation.as_ref().map_or(Ok(()), |explanation| started.item.job.count_weights(explanation))?;
            Ok(Outcome::Filled(filled, explanation.map(Box::new)))
        });
        in_flight.finish(id, counted);
    }
}

fn fill(
    filler: &Filler,
    started: &StartedItem,
    options: &WorkerOptions,
) -> heedful::Result<(Filled, Option<Explanation>)> {
    let (input, job) = (&started.item.input, &started.item.job);
    let top = job.options.n_best;
    let filled = filler.fill_tokens(input.tokens.clone(), top)?;
    let Detail::Explained { weights: form, scores, .. } = job.detail else { return Ok((filled, None)) };
    let explaining = ExplainOptions { scores, ..ExplainOptions::new(form, &options.search) };
    let explanation = Explanation::of_gaps(filler, &input.text, &input.tokens, &explaining)?;
    Ok((filled, Some(explanation)))
}
