//! The worker threads of a model, one for each lane. They survive panics: the jobs in flight get an error,
//! and the worker restarts.

use std::any::Any;
use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use heedful::decode::{DecodeError, SearchOptions};
use heedful::tensor::cpu::memory;
use heedful::tensor::cpu::threads::with_priority;

use super::in_flight::InFlight;
use super::lanes::Lane;
use super::queue::Queue;
use super::{JobError, WorkItem, classification, filling, generation};
use crate::metrics::ModelMetrics;
use crate::models::Engine;
use crate::options::Shortlists;

/// How a worker batches and searches.
#[derive(Clone, Debug)]
pub(crate) struct WorkerOptions {
    /// The shared search options; jobs override the beam and the number of outputs.
    pub(crate) search: SearchOptions,
    /// Whether translators use their shortlists.
    pub(crate) shortlists: Shortlists,
    /// How long an idle worker waits, after the first input, for the batch to become as large as the last
    /// one.
    pub(crate) batch_wait: Duration,
    /// How long a worker may take for a step before it counts as stuck.
    pub(crate) timeout: Duration,
}

/// A worker's handle of its queue: it takes the inputs of its lane and reports its activity.
pub(super) struct Worker {
    queue: Arc<Queue>,
    pub(super) lane: Lane,
}

impl Worker {
    fn new(queue: Arc<Queue>, lane: Lane) -> Worker {
        queue.workers.progress(lane);
        Worker { queue, lane }
    }

    /// Waits for the next input; `None` when the queue is closed and the lane is empty.
    pub(super) fn wait(&self) -> Option<WorkItem> {
        self.queue.workers.idle(self.lane, || self.queue.wait(self.lane))
    }

    /// Waits until `inputs` are available or the queue is closed, but at most for `timeout`.
    pub(super) fn wait_for(&self, inputs: usize, timeout: Duration) {
        self.queue.workers.idle(self.lane, || self.queue.wait_for(self.lane, inputs, timeout));
    }

    /// The next input, if there is one.
    pub(super) fn take(&self) -> Option<WorkItem> {
        self.queue.take(self.lane)
    }

    /// Runs one step at the priority of the lane and counts its time.
    pub(super) fn compute<R>(&self, metrics: &ModelMetrics, work: impl FnOnce() -> R) -> R {
        self.queue.workers.progress(self.lane);
        let result = metrics.busy.during(|| with_priority(self.lane.index(), work));
        self.queue.workers.progress(self.lane);
        result
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.queue.workers.end(self.lane);
    }
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
        let (engine, worker) = (engine.clone(), Worker::new(queue.clone(), lane));
        let (options, metrics) = (options.clone(), metrics.clone());
        let body = move || {
            let mut in_flight = InFlight::new(&metrics);
            while let Err(error) = catch_failure(&metrics, || run(&worker, &engine, &options, &mut in_flight))
            {
                // A failure before any input is taken may repeat forever: the next client gets the error.
                if in_flight.is_empty() {
                    let Some(item) = worker.wait() else { break };
                    item.job.fail(error.clone());
                }
                in_flight.fail_all(&error);
            }
            drop(engine);
            // The memory of a replaced model is returned to the system before the next version is loaded.
            memory::trim();
            drop(worker);
        };
        Builder::new().name(format!("{} {name}", lane.name())).spawn(body)?;
    }
    Ok(())
}

/// Runs a closure and turns an error or a panic into a [`JobError`].
pub(super) fn catch_failure<T, E: Display>(
    metrics: &ModelMetrics,
    body: impl FnOnce() -> Result<T, E>,
) -> Result<T, JobError> {
    // Only the inputs in flight can be left inconsistent by a panic, and they are failed.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result.map_err(|error| JobError::Internal(error.to_string())),
        Err(panic) => {
            metrics.panics.add(1);
            Err(JobError::Internal(format!("the model failed on its batch: {}", message(&*panic))))
        }
    }
}

fn run(
    worker: &Worker,
    engine: &Engine,
    options: &WorkerOptions,
    in_flight: &mut InFlight<'_>,
) -> Result<(), DecodeError> {
    match engine {
        Engine::Translator(translator) => {
            let mut options = options.clone();
            if options.shortlists == Shortlists::Used {
                options.search.shortlist = translator.shortlist().cloned();
            }
            generation::run((engine, translator.model()), worker, &options, in_flight)
        }
        Engine::Generator(generator) => {
            generation::run((engine, generator.model()), worker, options, in_flight)
        }
        Engine::Classifier(classifier) => {
            classification::run(classifier, worker, options, in_flight);
            Ok(())
        }
        Engine::Filler(filler) => {
            filling::run(filler, worker, options, in_flight);
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
