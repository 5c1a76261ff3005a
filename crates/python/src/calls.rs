//! What every call does that computes: other Python threads run meanwhile, and Ctrl-C ends it.

use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use heedful::tensor::cpu::threads as pool;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::arguments::Whole;

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

/// Computes without Python's lock what looks for no signals itself: at Ctrl-C the call ends, and its thread is left to end alone.
pub(crate) fn computed_apart<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    check_process()?;
    let in_flight = InFlight::enter();
    let (sender, found) = sync_channel(1);
    thread::spawn(move || {
        let result = work();
        drop(in_flight);
        // After Ctrl-C nobody waits for it.
        let _ = sender.send(result);
    });
    py.detach(move || Signals::default().wait_for(&found))?
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

    /// What a thread of ours sends.
    pub(crate) fn wait_for<T>(&mut self, sent: &Receiver<T>) -> PyResult<T> {
        loop {
            match sent.recv_timeout(PATIENCE) {
                Ok(sent) => return Ok(sent),
                Err(RecvTimeoutError::Timeout) => self.check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err(
                        "the thread that computes has panicked: its message is on standard error",
                    ));
                }
            }
        }
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
pub(crate) fn set_threads(count: Whole) -> PyResult<()> {
    let most = pool::MOST_THREADS;
    let count = count.at_least("count", 1)?;
    if count > most {
        return Err(PyValueError::new_err(format!("count is {count}: it must be from 1 to {most}")));
    }
    pool::set_thread_count(count);
    Ok(())
}

/// The number of threads that compute.
#[pyfunction]
pub(crate) fn threads() -> usize {
    pool::thread_count()
}
