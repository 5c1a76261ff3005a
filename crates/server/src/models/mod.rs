//! The models that are served, and how they are replaced while they are.
//!
//! A new model is loaded beside the old one and then takes its place. Requests that began with the old one end with it:
//! its worker goes when nobody holds it any more and its queue is empty.

mod engine;
mod spec;
mod watch;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use heedful::tasks::Task;

pub use self::engine::Engine;
pub use self::spec::{ModelSpec, Origin};
pub(crate) use self::watch::{Stamps, watch};
use crate::error::ServerError;
use crate::metrics::ModelMetrics;
use crate::options::ServerOptions;
use crate::work::{Queue, Tuning, start};

/// All models of a server, in the order in which they were given.
pub(crate) struct Models {
    pub(crate) served: Vec<Served>,
}

/// A model with a name.
pub(crate) struct Served {
    pub(crate) spec: ModelSpec,
    pub(crate) task: Task,
    pub(crate) metrics: Arc<ModelMetrics>,
    tuning: Tuning,
    queue: usize,
    current: RwLock<Arc<Loaded>>,
    /// Held while it is being replaced, so that two do not load it at once.
    replacing: Mutex<()>,
}

/// A model in memory with its worker.
pub(crate) struct Loaded {
    pub(crate) engine: Arc<Engine>,
    pub(crate) queue: Arc<Queue>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Models {
    /// Loads all models and starts their workers.
    pub(crate) fn open(options: &ServerOptions) -> Result<Models, ServerError> {
        let mut names = HashSet::new();
        let mut served = Vec::new();
        for spec in &options.models {
            if !names.insert(spec.name.clone()) {
                return Err(ServerError::SameName(spec.name.clone()));
            }
            served.push(Served::open(spec.clone(), options)?);
        }
        Ok(Models { served })
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Served> {
        self.served.iter().find(|served| served.spec.name == name)
    }

    pub(crate) fn with_task(&self, task: Task) -> impl Iterator<Item = &Served> {
        self.served.iter().filter(move |served| served.task == task)
    }
}

impl Served {
    fn open(spec: ModelSpec, options: &ServerOptions) -> Result<Served, ServerError> {
        let refused = |cause| ServerError::Model { name: spec.name.clone(), cause };
        let engine = spec.origin.load().map_err(refused)?;
        let (task, metrics) = (engine.task(), Arc::new(ModelMetrics::default()));
        let tuning = Tuning { options: options.search.clone(), batch_wait: options.batch_wait };
        let queue = options.limits.queue;
        let loaded = Loaded::start(&spec.name, engine, queue, &tuning, &metrics)?;
        let current = RwLock::new(Arc::new(loaded));
        Ok(Served { spec, task, metrics, tuning, queue, current, replacing: Mutex::new(()) })
    }

    /// The model as it is now.
    pub(crate) fn current(&self) -> Arc<Loaded> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Loads the model again; if that does not succeed, the old one keeps serving.
    pub(crate) fn reload(&self) -> Result<(), ServerError> {
        let _one_at_a_time = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |cause| ServerError::Model { name: self.spec.name.clone(), cause };
        let engine = self.spec.origin.load().map_err(refused)?;
        if engine.task() != self.task {
            let (old, new) = (self.task.model(), engine.task().model());
            return Err(refused(format!("it was {old} and is now {new}: start the server again for that")));
        }
        let loaded = Loaded::start(&self.spec.name, engine, self.queue, &self.tuning, &self.metrics)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *current, Arc::new(loaded));
        // Counted before anybody can see the new model: an answer from it proves a count that includes it.
        self.metrics.reloads.add(1);
        drop(current);
        // Its worker ends here, or with the last request that holds it.
        drop(old);
        Ok(())
    }
}

impl Loaded {
    fn start(
        name: &str,
        engine: Engine,
        queue: usize,
        tuning: &Tuning,
        metrics: &Arc<ModelMetrics>,
    ) -> Result<Loaded, ServerError> {
        let (engine, queue) = (Arc::new(engine), Arc::new(Queue::new(queue)));
        start(name, engine.clone(), queue.clone(), tuning.clone(), metrics.clone())?;
        Ok(Loaded { engine, queue })
    }
}
