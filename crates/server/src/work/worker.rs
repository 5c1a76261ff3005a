//! The thread of a model. It lives through panics: the orders at work are told, and it starts afresh.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

use heedful::decode::DecodeError;
use heedful::decode::SearchOptions;
use heedful::tensor::cpu::memory;

use super::desk::Desk;
use super::queue::Queue;
use super::{Failure, labels, speaker};
use crate::metrics::ModelMetrics;
use crate::models::Engine;

/// How a worker works.
#[derive(Clone, Debug)]
pub(crate) struct Tuning {
    /// The search that sentences join; requests choose beams and numbers of outputs of their own.
    pub(crate) options: SearchOptions,
    /// How long an idle worker waits, after the first item, for as many as it had together before.
    pub(crate) batch_wait: Duration,
}

/// Starts the thread of a model, which ends when the queue is closed and all is done.
pub(crate) fn start(
    name: &str,
    engine: Arc<Engine>,
    queue: Arc<Queue>,
    tuning: Tuning,
    metrics: Arc<ModelMetrics>,
) -> io::Result<()> {
    let work = move || {
        run(&engine, &queue, &tuning, &metrics);
        drop(engine);
        // A model that was replaced gives its memory back to the system.
        memory::trim();
    };
    Builder::new().name(format!("model {name}")).spawn(work).map(drop)
}

fn run(engine: &Engine, queue: &Queue, tuning: &Tuning, metrics: &ModelMetrics) {
    let mut desk = Desk::new(metrics);
    while let Err(failure) = surviving(metrics, || work(engine, queue, tuning, &mut desk)) {
        desk.fail_all(&failure);
    }
}

/// Does something that may go wrong, by an error or a panic.
pub(super) fn surviving<T>(
    metrics: &ModelMetrics,
    work: impl FnOnce() -> Result<T, DecodeError>,
) -> Result<T, Failure> {
    // What a panic leaves half-done is on the desk, which is cleared.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome.map_err(|error| Failure::Broken(error.to_string())),
        Err(panic) => {
            metrics.panics.add(1);
            Err(Failure::Broken(format!("the model failed on what it was working on: {}", message(&*panic))))
        }
    }
}

fn work(engine: &Engine, queue: &Queue, tuning: &Tuning, desk: &mut Desk<'_>) -> Result<(), DecodeError> {
    match engine {
        Engine::Translator(translator) => speaker::work((engine, translator.model()), queue, tuning, desk),
        Engine::Generator(generator) => speaker::work((engine, generator.model()), queue, tuning, desk),
        Engine::Classifier(classifier) => {
            labels::work(classifier, queue, tuning, desk);
            Ok(())
        }
    }
}

/// What a panic says of itself.
fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
}
