//! Ctrl-C and SIGTERM: the first one requests a clean end (save, then exit), the second one kills the process.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::TERM_SIGNALS;
use signal_hook::flag;

/// A request to end the process, sent by Ctrl-C or SIGTERM.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    requested: Arc<AtomicBool>,
}

impl Interrupt {
    /// The conventional exit status of an interrupted process.
    pub(crate) const STATUS: i32 = 130;

    /// Registers the handlers: the first signal is remembered, a second one kills the process.
    pub(crate) fn listen() -> io::Result<Interrupt> {
        let requested = Arc::new(AtomicBool::new(false));
        for &signal in TERM_SIGNALS {
            // In this order: at the first signal, the shutdown handler runs while the flag is still unset.
            flag::register_conditional_shutdown(signal, Interrupt::STATUS, requested.clone())?;
            flag::register(signal, requested.clone())?;
        }
        Ok(Interrupt { requested })
    }

    /// Whether a signal has arrived.
    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use signal_hook::consts::SIGTERM;
    use signal_hook::low_level::raise;

    use super::*;

    #[test]
    fn the_first_signal_is_remembered_and_the_second_ends_the_process() {
        // In a process of its own: signals concern all threads of one.
        let this = std::env::current_exe().expect("a running test has a file");
        let child = Command::new(this)
            .args(["--ignored", "--exact", "interrupt::tests::signalled_twice"])
            .output()
            .expect("the tests start again");
        assert_eq!(child.status.code(), Some(Interrupt::STATUS));
    }

    #[test]
    #[ignore = "ends its process; the test above runs it"]
    fn signalled_twice() {
        let interrupt = Interrupt::listen().expect("signals can be listened to");
        assert!(!interrupt.is_requested());
        raise(SIGTERM).expect("a known signal");
        assert!(interrupt.is_requested());
        raise(SIGTERM).expect("a known signal");
        unreachable!("the second signal ends the process");
    }
}
