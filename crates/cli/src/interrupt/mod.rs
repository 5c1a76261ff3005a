//! Signals that ask the program to end: Ctrl-C (SIGINT), SIGTERM, SIGHUP and SIGQUIT.
//!
//! Most commands end at once and leave no unfinished file. Those that have something to save hold an [`Interrupt`]: the first
//! signal is then a request, and only a second one ends the process. The exit status is 128 and the number of the signal, as
//! that of a program that does not handle it.
//!
//! A signal that is ignored when the program starts stays so: `nohup heedful train …` survives the end of its terminal.

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod unix;

use std::error::Error;
use std::fmt;
use std::io;
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use heedful::store::unfinished;

#[cfg(not(unix))]
use elsewhere as system;
#[cfg(unix)]
use unix as system;

/// The first signal that arrived while someone held an [`Interrupt`]; 0 if none did.
static REQUESTED: AtomicI32 = AtomicI32::new(0);
/// How many hold one.
static HOLDERS: AtomicUsize = AtomicUsize::new(0);

/// Handles signals from here on.
pub(crate) fn handle_signals() -> io::Result<()> {
    system::listen(arrived)
}

/// Called for every signal, on a thread of its own.
fn arrived(signal: i32) {
    let is_request = HOLDERS.load(Ordering::SeqCst) > 0
        && REQUESTED.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    if !is_request {
        unfinished::abandon_all();
        process::exit(128 + signal);
    }
}

/// While it is held, the first signal is a request to save and end.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    _holder: Arc<Holder>,
}

#[derive(Debug)]
struct Holder;

impl Interrupt {
    pub(crate) fn hold() -> Interrupt {
        HOLDERS.fetch_add(1, Ordering::SeqCst);
        Interrupt { _holder: Arc::new(Holder) }
    }

    /// Whether a signal has arrived.
    pub(crate) fn is_requested(&self) -> bool {
        REQUESTED.load(Ordering::SeqCst) != 0
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        HOLDERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The end of a command that a signal has asked to end, after it has saved what it had.
#[derive(Debug)]
pub(crate) struct Interrupted {
    message: Option<String>,
}

impl Interrupted {
    /// With a message for the user.
    pub(crate) fn because(message: impl Into<String>) -> Interrupted {
        Interrupted { message: Some(message.into()) }
    }

    /// Everything is said.
    pub(crate) fn in_silence() -> Interrupted {
        Interrupted { message: None }
    }

    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    pub(crate) fn status() -> ExitCode {
        ExitCode::from(u8::try_from(128 + REQUESTED.load(Ordering::SeqCst)).unwrap_or(1))
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message().unwrap_or("interrupted"))
    }
}

impl Error for Interrupted {}
