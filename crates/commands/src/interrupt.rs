//! Signals that ask the program to end: Ctrl-C (SIGINT), SIGTERM, SIGHUP and SIGQUIT.
//!
//! Most commands end at once and leave no unfinished file. Commands with something to save hold an
//! [`Interrupt`]: the first signal then only sets a flag, and a second one ends the process. The exit status
//! is 128 + the signal number, as for a program that does not handle the signal.
//!
//! A signal that is ignored when the program starts stays ignored: `nohup heedful train …` survives the end
//! of its terminal.

use std::error::Error;
use std::fmt;
use std::io;
use std::process::{self, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;

use heedful::store::unfinished;
use heedful::system::{Signal, Signals};

/// The first signal that arrived while an [`Interrupt`] existed.
static REQUESTED: OnceLock<Signal> = OnceLock::new();
/// Number of existing [`Interrupt`]s.
static HOLDERS: AtomicUsize = AtomicUsize::new(0);

/// Starts handling signals.
pub(crate) fn handle_signals() -> io::Result<()> {
    let handled: Vec<Signal> = Signal::ALL.into_iter().filter(|signal| !signal.is_ignored()).collect();
    let mut signals = Signals::listen(&handled)?;
    let listen = move || loop {
        arrived(signals.wait());
    };
    thread::Builder::new().name("signals".to_owned()).spawn(listen)?;
    Ok(())
}

/// Called for every signal, on a separate thread.
fn arrived(signal: Signal) {
    let is_request = HOLDERS.load(Ordering::SeqCst) > 0 && REQUESTED.set(signal).is_ok();
    if !is_request {
        unfinished::abandon_all();
        process::exit(signal.exit_status().into());
    }
}

/// While it exists, the first signal is a request to save and exit.
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
        REQUESTED.get().is_some()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        HOLDERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Error of a command that a signal ended, after it saved its work.
#[derive(Debug)]
pub(crate) struct Interrupted {
    message: Option<String>,
}

impl Interrupted {
    /// With a message for the user.
    pub(crate) fn with_message(message: impl Into<String>) -> Interrupted {
        Interrupted { message: Some(message.into()) }
    }

    /// Without a message.
    pub(crate) fn silent() -> Interrupted {
        Interrupted { message: None }
    }

    pub(crate) fn message(&self) -> Option<&str> {
        self.message.as_deref()
    }

    pub(crate) fn status() -> ExitCode {
        REQUESTED.get().map_or(ExitCode::FAILURE, |signal| ExitCode::from(signal.exit_status()))
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message().unwrap_or("interrupted"))
    }
}

impl Error for Interrupted {}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// Long enough for the slowest machine; only a test that fails waits for it.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// Exit status of a test in its own process, because signals concern all threads. `env` restores the
    /// default signal actions, in case the tests were started with some signals ignored.
    fn status_of(test: &str) -> Option<i32> {
        let this = std::env::current_exe().expect("a running test has a file");
        let mut child = Command::new(&this);
        if Signal::ALL.into_iter().any(Signal::is_ignored) {
            child = Command::new("env");
            child.arg("--default-signal=HUP,INT,QUIT,TERM").arg(&this);
        }
        child.args(["--ignored", "--exact", &format!("interrupt::tests::{test}")]).stdout(Stdio::null());
        let mut child = child.spawn().expect("the tests start again (`env` of GNU coreutils 8.31 or newer)");
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait().expect("a process") {
                return status.code();
            }
            if start.elapsed() > PATIENCE {
                let _ = child.kill();
                panic!("{test} did not end within {PATIENCE:?}");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends a signal to this process.
    fn send(signal: Signal) {
        let arguments = [format!("-{}", signal.number()), process::id().to_string()];
        assert!(Command::new("kill").args(arguments).status().expect("kill is there").success());
    }

    #[test]
    #[cfg_attr(not(unix), ignore = "it sends signals")]
    fn one_signal_ends_a_command_that_has_nothing_to_save_and_two_end_any() {
        assert_eq!(status_of("signalled_once"), Some(129));
        assert_eq!(status_of("signalled_twice"), Some(143));
    }

    #[test]
    #[ignore = "ends its process; the test above runs it"]
    fn signalled_once() {
        handle_signals().expect("signals can be listened to");
        drop(Interrupt::hold());
        send(Signal::Hangup);
        loop {
            thread::park();
        }
    }

    #[test]
    #[ignore = "ends its process; the test above runs it"]
    fn signalled_twice() {
        handle_signals().expect("signals can be listened to");
        let interrupt = Interrupt::hold();
        send(Signal::Terminate);
        while !interrupt.is_requested() {
            thread::yield_now();
        }
        send(Signal::Terminate);
        loop {
            thread::park();
        }
    }
}
