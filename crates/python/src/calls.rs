//! Runs computations without the GIL, so that other Python threads run and Ctrl-C ends the call.

use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use heedful::tensor::cpu::threads as pool;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::arguments::PyInt;

/// The interval of checks for Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

static IN_FLIGHT: AtomicUsize = AtomicUsize::new(0);

/// Computes without the GIL.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut Signals) -> PyResult<T> + Send,
) -> PyResult<T> {
    check_process()?;
    let _in_flight = InFlight::enter();
    py.detach(|| work(&mut Signals::default()))
}

/// Computes on another thread without the GIL, for work that does not check signals: Ctrl-C ends the call,
/// and the thread finishes alone.
pub(crate) fn detached_on_thread<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    check_process()?;
    let in_flight = InFlight::enter();
    let (sender, found) = sync_channel(1);
    thread::spawn(move || {
        let result = work();
        drop(in_flight);
        // After Ctrl-C, the receiver is gone.
        let _ = sender.send(result);
    });
    py.detach(move || Signals::default().wait_for(&found))?
}

/// Threads do not survive a fork, so a computation in a forked process would wait for them forever.
pub(crate) fn check_process() -> PyResult<()> {
    static PROCESS: OnceLock<u32> = OnceLock::new();
    if *PROCESS.get_or_init(process::id) == process::id() {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "this process was forked from one that computed with heedful, and threads do not survive a fork: start it with \
         multiprocessing.get_context(\"spawn\"), or use heedful only in the forked processes",
    ))
}

/// Checks for signals at intervals: Ctrl-C raises an exception.
pub(crate) struct Signals {
    last_check: Instant,
}

impl Default for Signals {
    fn default() -> Signals {
        Signals { last_check: Instant::now() }
    }
}

impl Signals {
    /// Must be called between steps.
    pub(crate) fn check(&mut self) -> PyResult<()> {
        if self.last_check.elapsed() < SIGNAL_INTERVAL {
            return Ok(());
        }
        self.last_check = Instant::now();
        Python::attach(|py| py.check_signals())
    }

    /// Waits for a message from a worker thread, checking for signals.
    pub(crate) fn wait_for<T>(&mut self, receiver: &Receiver<T>) -> PyResult<T> {
        loop {
            match receiver.recv_timeout(SIGNAL_INTERVAL) {
                Ok(sent) => return Ok(sent),
                Err(RecvTimeoutError::Timeout) => self.check()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err(
                        "the computing thread panicked: its message is on standard error",
                    ));
                }
            }
        }
    }
}

/// Counts a computing call until it is dropped.
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

/// The number of calls that compute at this moment, in all Python threads.
#[pyfunction]
pub(crate) fn calls_in_flight() -> usize {
    IN_FLIGHT.load(Ordering::Relaxed)
}

/// Sets the number of compute threads. Results do not depend on it.
#[pyfunction]
pub(crate) fn set_threads(count: PyInt) -> PyResult<()> {
    let most = pool::MAX_THREADS;
    let count = count.at_least("count", 1)?;
    if count > most {
        return Err(PyValueError::new_err(format!("count is {count}: it must be from 1 to {most}")));
    }
    pool::set_thread_count(count);
    Ok(())
}

/// The number of compute threads.
#[pyfunction]
pub(crate) fn threads() -> usize {
    pool::thread_count()
}
