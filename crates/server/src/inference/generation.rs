//! The worker of a lane of a generating model: one search for the sentences of all clients (continuous
//! batching).
//!
//! ```text
//! admit     inputs from the queue, while the search has capacity
//! cancel    inputs whose clients have disconnected
//! step      one token for every hypothesis of every sentence
//! deliver   finished sentences, and partial texts of the others
//! explain   at most one sentence between two steps, so that no client waits long for another's attention weights
//! ```

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use heedful::decode::{
    Constraints, DecodeError, Hypothesis, Scheduler, SearchInput, SearchOptions, SentenceId,
};
use heedful::explain::{ExplainOptions, Explanation, WeightForm, generated_tokens};
use heedful::models::Generate;
use heedful::tasks::language::Generator;
use heedful::tasks::translate::{Output, Translation, Translator};

use super::in_flight::{InFlight, StartedItem};
use super::worker::{Worker, WorkerOptions, catch_failure};
use super::{Detail, DetailedOutput, Input, JobError, Outcome, WorkItem};
use crate::models::Engine;

/// Runs until the queue is closed and empty. A sentence that fails ends its own job only.
pub(super) fn run(
    (engine, model): (&Engine, &dyn Generate),
    worker: &Worker,
    options: &WorkerOptions,
    in_flight: &mut InFlight<'_>,
) -> Result<(), DecodeError> {
    if worker.lane.is_shortest() {
        return serve((engine, model), worker, options, in_flight).map(drop);
    }
    // A search keeps the memory of its KV cache: a lane of long texts frees it when it has no more inputs.
    loop {
        worker.wait_for(1, Duration::MAX);
        if serve((engine, model), worker, options, in_flight)? == Ended::Closed {
            return Ok(());
        }
    }
}

/// Why a search has ended.
#[derive(PartialEq, Eq)]
enum Ended {
    /// Its queue is closed and empty.
    Closed,
    /// The lane is for longer texts and has no inputs.
    Idle,
}

fn serve(
    (engine, model): (&Engine, &dyn Generate),
    worker: &Worker,
    options: &WorkerOptions,
    in_flight: &mut InFlight<'_>,
) -> Result<Ended, DecodeError> {
    let mut scheduler = Scheduler::new(model, &options.search)?;
    let mut is_new = true;
    let mut to_explain: VecDeque<(SentenceId, Vec<Hypothesis>)> = VecDeque::new();
    // Sentences of the last step.
    let mut batch_size = 1;
    loop {
        if in_flight.is_empty() {
            if !is_new && !worker.lane.is_shortest() {
                return Ok(Ended::Idle);
            }
            let Some(item) = worker.wait() else { return Ok(Ended::Closed) };
            admit(item, &mut scheduler, in_flight);
            // Clients that were just answered may send their next request at once: one batch stays one batch.
            worker.wait_for(batch_size - 1, options.batch_wait);
            is_new = false;
        }
        while scheduler.has_capacity()
            && let Some(item) = worker.take()
        {
            admit(item, &mut scheduler, in_flight);
        }
        for id in in_flight.remove_cancelled() {
            scheduler.cancel(id);
            to_explain.retain(|(explained, _)| *explained != id);
        }
        if !scheduler.is_idle() {
            batch_size = in_flight.len();
            in_flight.metrics.steps.add(1);
            in_flight.metrics.step_sentences.add(batch_size as u64);
            worker.compute(in_flight.metrics, || scheduler.step())?;
            while let Some((id, hypotheses)) = scheduler.poll() {
                match (hypotheses, in_flight.get(id).map(|started| started.item.job.detail)) {
                    (Err(error), _) => in_flight.fail(id, failure(&error)),
                    (Ok(hypotheses), Some(Detail::Explained { .. })) => {
                        to_explain.push_back((id, hypotheses));
                    }
                    (Ok(hypotheses), Some(Detail::Text)) => finish(engine, id, hypotheses, in_flight),
                    (Ok(_), None) => {}
                }
            }
            send_partial_texts(engine, &scheduler, in_flight);
        }
        if let Some((id, hypotheses)) = to_explain.pop_front() {
            worker.compute(in_flight.metrics, || explain(engine, options, id, hypotheses, in_flight));
        }
    }
}

fn admit(item: WorkItem, scheduler: &mut Scheduler<'_>, in_flight: &mut InFlight<'_>) {
    if item.input.tokens.is_empty() {
        item.job.done(item.index, unchanged(&item), Instant::now());
        return;
    }
    let constraints = Constraints { prefix: item.input.prefix.clone(), phrases: Vec::new() };
    let input = SearchInput { source: item.input.tokens.clone(), constraints };
    in_flight.add(scheduler.push_with(input, item.job.options.clone()), item);
}

/// Why a sentence failed: an invalid input, or the model.
fn failure(error: &DecodeError) -> JobError {
    match error {
        DecodeError::Batch(_) | DecodeError::Constraints { .. } | DecodeError::Options(_) => {
            JobError::InvalidInput(error.to_string())
        }
        _ => JobError::Internal(error.to_string()),
    }
}

/// A sentence without tokens is returned unchanged.
fn unchanged(item: &WorkItem) -> Outcome {
    let text = item.input.text.clone();
    match item.job.detail {
        Detail::Text => {
            let hypothesis = Hypothesis { tokens: Vec::new(), score: 0.0, log_probability: 0.0 };
            Outcome::Generated(vec![Output { text, hypothesis }])
        }
        Detail::Explained { .. } => Outcome::Explained(Box::new(Explanation::blank(&text))),
    }
}

fn finish(engine: &Engine, id: SentenceId, hypotheses: Vec<Hypothesis>, in_flight: &mut InFlight<'_>) {
    let Some(started) = in_flight.get(id) else { return };
    count(started, &hypotheses, in_flight);
    let outputs = outputs(engine, started, hypotheses);
    in_flight.done(id, Outcome::Generated(outputs));
}

fn explain(
    engine: &Engine,
    options: &WorkerOptions,
    id: SentenceId,
    hypotheses: Vec<Hypothesis>,
    in_flight: &mut InFlight<'_>,
) {
    let Some(started) = in_flight.get(id) else { return };
    count(started, &hypotheses, in_flight);
    let outputs = outputs(engine, started, hypotheses);
    let Detail::Explained { weights, scores, alternatives } = started.item.job.detail else {
        return in_flight.done(id, Outcome::Generated(outputs));
    };
    let without_heads = started.item.job.options.without_heads.clone();
    let search = SearchOptions { without_heads, ..options.search.clone() };
    let explaining = ExplainOptions { scores, ..ExplainOptions::new(weights, &search) };
    let (input, job, metrics) = (&started.item.input, &started.item.job, in_flight.metrics);
    let outcome = match engine {
        Engine::Translator(translator) => {
            let found =
                catch_failure(metrics, || explained(translator, input, outputs, &explaining, alternatives));
            found.and_then(|found| {
                job.count_weights(&found)?;
                Ok(Outcome::Explained(Box::new(found)))
            })
        }
        Engine::Generator(generator) => {
            let detailed = |output: Output| {
                let detailed =
                    catch_failure(metrics, || detail(generator, input, output, &explaining, alternatives))?;
                // Counted per text, so that more weights than the maximum never exist at once.
                detailed.explanation.as_ref().map_or(Ok(()), |explanation| job.count_weights(explanation))?;
                Ok(detailed)
            };
            outputs.into_iter().map(detailed).collect::<Result<_, JobError>>().map(Outcome::Detailed)
        }
        Engine::Classifier(_) | Engine::Filler(_) => Ok(Outcome::Generated(outputs)),
    };
    in_flight.finish(id, outcome);
}

fn explained(
    translator: &Translator,
    input: &Input,
    outputs: Vec<Output>,
    options: &ExplainOptions,
    alternatives: Option<usize>,
) -> heedful::Result<Explanation> {
    let translation = Translation { source: input.tokens.clone(), outputs };
    let mut found = Explanation::of_translation(translator, &input.text, &translation, options)?;
    if let Some(count) = alternatives.filter(|&count| count > 0) {
        found.add_alternatives(translator, &translation, count, &options.search)?;
    }
    Ok(found)
}

fn detail(
    generator: &Generator,
    input: &Input,
    output: Output,
    options: &ExplainOptions,
    alternatives: Option<usize>,
) -> heedful::Result<DetailedOutput> {
    let generated = &output.hypothesis.tokens;
    let explanation = match options.form {
        WeightForm::None => None,
        // The source begins with `<bos>`.
        _ => {
            let ids = [&input.tokens[1..], generated].concat();
            Some(Explanation::of_text(generator, &ids, options)?)
        }
    };
    let pieces = alternatives
        .map(|count| generated_tokens(generator, &input.tokens, generated, count, &options.search));
    Ok(DetailedOutput { pieces: pieces.transpose()?, explanation, output })
}

fn outputs(engine: &Engine, started: &StartedItem, hypotheses: Vec<Hypothesis>) -> Vec<Output> {
    let source = &started.item.input.tokens;
    let output =
        |hypothesis: Hypothesis| Output { text: engine.decode(source, &hypothesis.tokens), hypothesis };
    hypotheses.into_iter().map(output).collect()
}

fn count(started: &StartedItem, hypotheses: &[Hypothesis], in_flight: &InFlight<'_>) {
    in_flight.metrics.sentences.add(1);
    in_flight.metrics.source_tokens.add(started.item.input.tokens.len() as u64);
    in_flight.metrics.target_tokens.add(hypotheses.first().map_or(0, |best| best.tokens.len()) as u64);
}

fn send_partial_texts(engine: &Engine, scheduler: &Scheduler<'_>, in_flight: &InFlight<'_>) {
    for (id, started) in in_flight.streaming() {
        if let Some(generated) = scheduler.so_far(id) {
            let text = engine.decode(&started.item.input.tokens, &generated);
            // The bytes of an incomplete character decode to replacement characters.
            let text = text.trim_end_matches('\u{FFFD}').to_owned();
            started.item.job.partial(started.item.index, text);
        }
    }
}
