//! A timeout for waiting inside a test's own process.

use std::process;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Long enough for the slowest machine; only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(600);

/// A timeout that runs while this value is alive. If it expires, the test process prints `what` and exits.
pub(crate) struct Waiting {
    _done: Sender<()>,
}

impl Waiting {
    pub(crate) fn on(what: &'static str) -> Waiting {
        let (done, is_done) = channel::<()>();
        thread::spawn(move || {
            if is_done.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                eprintln!("waited {PATIENCE:?} for {what}");
                process::exit(101);
            }
        });
        Waiting { _done: done }
    }
}
