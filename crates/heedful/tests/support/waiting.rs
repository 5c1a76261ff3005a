//! A limit for what a test waits for in its own process.

use std::process;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Long enough for the slowest machine; only a test that fails waits for it.
const PATIENCE: Duration = Duration::from_secs(600);

/// While it is held, something is waited for. If that takes too long, the tests end and say what it was.
pub(crate) struct Waiting {
    _over: Sender<()>,
}

impl Waiting {
    pub(crate) fn on(what: &'static str) -> Waiting {
        let (over, is_over) = channel::<()>();
        thread::spawn(move || {
            if is_over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                eprintln!("waited {PATIENCE:?} for {what}");
                process::exit(101);
            }
        });
        Waiting { _over: over }
    }
}
