//! What every call does that computes: other Python threads run meanwhile, and Ctrl-C ends it.

use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use heedful::tensor::cpu::threads as pool;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// How long Ctrl-C may wait.
const PATIENCE: Duration = Duration::from_millis(50);

static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

/// Computes without Python's lock.
pub(crate) fn computed<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut Signals) -> PyResult<T> + Send,
) -> PyResult<T> {
    check_process()?;
    let _in_flight = InFlight::enter();
    py.detach(|| work(&mut Signals::default()))
}

/// Threads do not survive a fork, so a computation in a forked process would wait for them for ever.
pub(crate) fn check_process() -> PyResult<()> {
    static PROCESS: OnceLock<u32> = OnceLock::new();
    if *PROCESS.get_or_init(process::id) == process::id() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "this process was forked from one that computed with heedful, whose threads it does not have: start it with \
         multiprocessing.get_context(\"spawn\"), or use heedful only in the processes that were forked",
    ))
}

/// Looks for signals now and then: Ctrl-C is an exception there.
pub(crate) struct Signals {
    looked: Instant,
}

impl Default for Signals {
    fn default() -> Signals {
        Signals { looked: Instant::now() }
    }
}

impl Signals {
    /// To be called between steps.
    pub(crate) fn check(&mut self) -> PyResult<()> {
        if self.looked.elapsed() < PATIENCE {
            return Ok(());
        }
        self.looked = Instant::now();
        Python::attach(|py| py.check_signals())
    }

    /// How long to wait before the next look.
    pub(crate) fn patience() -> Duration {
        PATIENCE
    }
}

/// A call that computes; dropped, it has ended.
struct InFlight;

impl InFlight {
    fn enter() -> InFlight {
        IN_FLIGHT.fetch_add(1, Ordering::Relaxed);
        InFlight
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        IN_FLIGHT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many calls compute at this moment, in all Python threads.
#[pyfunction]
pub(crate) fn calls_in_flight() -> usize {
    IN_FLIGHT.load(Ordering::Relaxed)
}

/// Sets the number of threads that compute. Results are the same with any number.
#[pyfunction]
pub(crate) fn set_threads(count: usize) -> PyResult<()> {
    let most = pool::MOST_THREADS;
    if count == 0 || count > most {
        return Err(PyValueError::new_err(format!(
            "the number of threads is {count}: it must be from 1 to {most}"
        )));
    }
    pool::set_thread_count(count);
    Ok(())
}

/// The number of threads that compute.
#[pyfunction]
pub(crate) fn threads() -> usize {
    pool::thread_count()
}
