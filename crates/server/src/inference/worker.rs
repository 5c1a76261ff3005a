//! The worker threads of a model, one for each lane. They survive panics: the jobs in flight get an error, and the worker
//! starts afresh.

use std::any::Any;
use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use heedful::decode::{DecodeError, SearchOptions};
use heedful::tensor::cpu::memory;
use heedful::tensor::cuda;

use super::in_flight::InFlight;
use super::lanes::Lane;
use super::queue::Queue;
use super::{JobError, classification, filling, generation};
use crate::metrics::ModelMetrics;
use crate::models::Engine;
use crate::options::Shortlists;

/// How a worker batches and searches.
#[derive(Clone, Debug)]
pub(crate) struct WorkerOptions {
    /// The search that sentences join; jobs have beams and numbers of outputs of their own.
    pub(crate) search: SearchOptions,
    /// Whether a translator's search has its shortlist.
    pub(crate) shortlists: Shortlists,
    /// How long an idle worker waits, after the first input, until the batch is as large as the last one.
    pub(crate) batch_wait: Duration,
}

/// Starts the worker threads of a model, which end when the queue is closed and empty.
pub(crate) fn start(
    name: &str,
    engine: &Arc<Engine>,
    queue: &Arc<Queue>,
    options: &WorkerOptions,
    metrics: &Arc<ModelMetrics>,
) -> io::Result<()> {
    for lane in Lane::all() {
        let (engine, queue) = (engine.clone(), queue.clone());
        let (options, metrics) = (options.clone(), metrics.clone());
        let body = move || {
            let mut in_flight = InFlight::new(&metrics);
            while let Err(error) =
                catch_failure(&metrics, || run(lane, &engine, &queue, &options, &mut in_flight))
            {
                in_flight.fail_all(&error);
            }
            drop(engine);
            // A model that was replaced returns its memory to the system.
            memory::trim();
        };
        Builder::new().name(format!("{} {name}", lane.index())).spawn(body)?;
    }
    Ok(())
}

/// Runs something that may fail by an error or a panic.
pub(super) fn catch_failure<T, E: Display>(
    metrics: &ModelMetrics,
    body: impl FnOnce() -> Result<T, E>,
) -> Result<T, JobError> {
    // State that a panic may leave inconsistent is that of the inputs in flight, which are failed.
    match catch_unwind(AssertUnwindSafe(|| cuda::fitting(body))) {
        Ok(Ok(result)) => result.map_err(|error| JobError::Internal(error.to_string())),
        Ok(Err(full)) => Err(JobError::Internal(full.to_string())),
        Err(panic) => {
            metrics.panics.add(1);
            Err(JobError::Internal(format!("the model failed on its batch: {}", message(&*panic))))
        }
    }
}

fn run(
    lane: Lane,
    engine: &Engine,
    queue: &Queue,
    options: &WorkerOptions,
    in_flight: &mut InFlight<'_>,
) -> Result<(), DecodeError> {
    match engine {
        Engine::Translator(translator) => {
            let mut options = options.clone();
            if options.shortlists == Shortlists::Used {
                options.search.shortlist = translator.shortlist().cloned();
            }
            generation::run((engine, translator.model()), (queue, lane), &options, in_flight)
        }
        Engine::Generator(generator) => {
            generation::run((engine, generator.model()), (queue, lane), options, in_flight)
        }
        Engine::Classifier(classifier) => {
            classification::run(classifier, (queue, lane), options, in_flight);
            Ok(())
        }
        Engine::Filler(filler) => {
            filling::run(filler, (queue, lane), options, in_flight);
            Ok(())
        }
    }
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
}
