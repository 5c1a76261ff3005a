//! The served models and their replacement at runtime.
//!
//! A new version is loaded while the old one serves, and then replaces it. Requests that started with the old
//! version finish with it within the grace period: its workers end when no request holds it and its queue is
//! empty. At most two versions of a model are in memory: the next one is loaded only when the workers of the
//! previous one have ended.

mod spec;

mod engine;

mod watch;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use heedful::tasks::Task;
use parking_lot::{Mutex, RwLock};

pub use self::engine::Engine;
pub use self::spec::{ModelSpec, Origin};
pub(crate) use self::watch::{Stamps, watch};
use crate::error::Error;
use crate::inference::{OpenQueue, Queue, SEARCHES_OF_A_MODEL, WorkerOptions, start};
use crate::metrics::ModelMetrics;
use crate::options::{ServerOptions, Shortlists};

/// All models of a server, in the order in which they were given.
pub(crate) struct Models {
    pub(crate) served: Vec<ServedModel>,
}

/// A named model and its counters. The loaded version may be replaced.
pub(crate) struct ServedModel {
    pub(crate) spec: ModelSpec,
    pub(crate) task: Task,
    /// A few example inputs.
    pub(crate) examples: Vec<String>,
    pub(crate) metrics: Arc<ModelMetrics>,
    worker_options: WorkerOptions,
    options: ServerOptions,
    current: RwLock<Arc<LoadedModel>>,
    /// The queue of the last replaced version, until its workers have ended.
    replaced: Mutex<Option<Arc<Queue>>>,
    /// Held during a reload, so that no two run at once.
    reloading: Mutex<()>,
}

/// A model in memory with its workers.
pub(crate) struct LoadedModel {
    // Dropped before the queue is closed: the last worker drops the engine and then returns its memory to the
    // system.
    pub(crate) engine: Arc<Engine>,
    pub(crate) queue: OpenQueue,
}

impl Models {
    /// Loads all models and starts their workers.
    pub(crate) fn open(options: &ServerOptions) -> Result<Models, Error> {
        let mut names = HashSet::new();
        let mut served = Vec::new();
        for spec in &options.models {
            if !names.insert(spec.name.clone()) {
                return Err(Error::SameName(spec.name.clone()));
            }
            served.push(ServedModel::open(spec.clone(), options)?);
        }
        Ok(Models { served })
    }

    pub(crate) fn named(&self, name: &str) -> Option<&ServedModel> {
        self.served.iter().find(|served| served.spec.name == name)
    }

    /// Reloads all models. Returns an error for each one that cannot be loaded; its old version keeps
    /// serving.
    pub(crate) fn reload(&self) -> Vec<Error> {
        self.served.iter().filter_map(|served| served.reload().err()).collect()
    }

    /// A sentence about a stuck worker of any version, if there is one.
    pub(crate) fn stuck(&self) -> Option<String> {
        let stuck = |served: &ServedModel| {
            served.queues().iter().find_map(|queue| stuck_in(queue, &served.spec.name))
        };
        self.served.iter().find_map(stuck)
    }

    pub(crate) fn with_task(&self, task: Task) -> impl Iterator<Item = &ServedModel> {
        self.served.iter().filter(move |served| served.task == task)
    }
}

impl ServedModel {
    fn open(spec: ModelSpec, options: &ServerOptions) -> Result<ServedModel, Error> {
        let failed = |cause| Error::Model { name: spec.name.clone(), cause };
        let engine = load(&spec, options).map_err(failed)?;
        let searches = options.models.len() * SEARCHES_OF_A_MODEL;
        let (task, metrics) = (engine.task(), Arc::new(ModelMetrics::default()));
        let worker_options = WorkerOptions {
            search: options.search.clone().sharing_device(searches, engine.model().params()),
            shortlists: options.shortlists,
            batch_wait: options.batch_wait,
            timeout: options.limits.worker_timeout,
        };
        let loaded = LoadedModel::start(&spec.name, engine, options.limits.queue, &worker_options, &metrics)?;
        let current = RwLock::new(Arc::new(loaded));
        Ok(ServedModel {
            examples: spec.origin.examples(),
            spec,
            task,
            metrics,
            worker_options,
            options: options.clone(),
            current,
            replaced: Mutex::default(),
            reloading: Mutex::new(()),
        })
    }

    /// The loaded version.
    pub(crate) fn current(&self) -> Arc<LoadedModel> {
        self.current.read().clone()
    }

    /// The queues of all versions in memory, the current one first.
    pub(crate) fn queues(&self) -> Vec<Arc<Queue>> {
        let replaced = self.replaced.lock().clone().filter(|queue| !queue.workers.have_ended());
        [self.current().queue.0.clone()].into_iter().chain(replaced).collect()
    }

    /// A sentence about a stuck worker of the current version, if there is one.
    pub(crate) fn stuck(&self) -> Option<String> {
        stuck_in(&self.current().queue, &self.spec.name)
    }

    /// Waits until the last replaced version is dropped; the error is a sentence.
    fn wait_for_replaced(&self) -> Result<(), String> {
        let replaced = self.replaced.lock().clone();
        if replaced.is_some_and(|queue| !queue.workers.wait_for_end()) {
            let remedy = "its requests do not end: restart the server";
            return Err(format!("the previous version is still in memory: {remedy}"));
        }
        *self.replaced.lock() = None;
        Ok(())
    }

    /// Reloads the model; if that fails, the old version keeps serving.
    pub(crate) fn reload(&self) -> Result<(), Error> {
        let _one_at_a_time = self.reloading.lock();
        let failed = |cause| Error::Model { name: self.spec.name.clone(), cause };
        self.wait_for_replaced().map_err(failed)?;
        let engine = load(&self.spec, &self.options).map_err(failed)?;
        if engine.task() != self.task {
            let (old, new) = (self.task.model(), engine.task().model());
            return Err(failed(format!(
                "it was {old} and is now {new}: restart the server to change the task"
            )));
        }
        let (name, capacity) = (&self.spec.name, self.options.limits.queue);
        let loaded = LoadedModel::start(name, engine, capacity, &self.worker_options, &self.metrics)?;
        let mut current = self.current.write();
        let old = std::mem::replace(&mut *current, Arc::new(loaded));
        // Counted before the new model is visible: a response from it implies a count that includes it.
        self.metrics.reloads.add(1);
        drop(current);
        old.queue.workers.retire(Instant::now() + self.options.limits.grace);
        *self.replaced.lock() = Some(old.queue.0.clone());
        // Its workers end now, or with the last request that holds it.
        drop(old);
        Ok(())
    }
}

fn stuck_in(queue: &Queue, model: &str) -> Option<String> {
    queue.workers.stuck(Instant::now()).first().map(|stuck| stuck.describe(model))
}

/// Loads a model and limits its texts; the error is a sentence.
fn load(spec: &ModelSpec, options: &ServerOptions) -> Result<Engine, String> {
    let mut engine = spec.origin.load(options.search.compute)?;
    options.device.place(engine.model()).map_err(|why| why.to_string())?;
    if options.shortlists == Shortlists::Used {
        if matches!(&engine, Engine::Translator(translator) if translator.shortlist().is_none()) {
            let remedy = "learn one with heedful shortlist, or serve without --shortlist";
            return Err(format!("it has no shortlist: {remedy}"));
        }
        if !engine.model().params().device().supports_shortlists() {
            let remedy = "serve without --shortlist, or with --device cpu";
            return Err(format!("shortlists are supported on the CPU only: {remedy}"));
        }
    }
    options.limits.text_tokens.map_or(Ok(()), |tokens| engine.set_max_tokens(tokens))?;
    Ok(engine)
}

impl LoadedModel {
    fn start(
        name: &str,
        engine: Engine,
        capacity: usize,
        options: &WorkerOptions,
        metrics: &Arc<ModelMetrics>,
    ) -> Result<LoadedModel, Error> {
        // If a thread cannot be started, the drop closes the queue and the started threads end.
        let queue = OpenQueue(Arc::new(Queue::new(capacity, options.timeout)));
        let engine = Arc::new(engine);
        start(name, &engine, &queue.0, options, metrics)?;
        Ok(LoadedModel { engine, queue })
    }
}
