//! Ctrl-C and SIGTERM: the first asks a run to save and end, the second ends the process at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::TERM_SIGNALS;
use signal_hook::flag;

/// Told by the system that it is time to end.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// The usual exit status of a process that was interrupted.
    pub(crate) const STATUS: i32 = 130;

    /// From now on a signal to end does not kill the process but is remembered; a second one kills it.
    pub(crate) fn listen() -> io::Result<Interrupt> {
        let asked = Arc::new(AtomicBool::new(false));
        for &signal in TERM_SIGNALS {
            // In this order: at the first signal the flag is still down when the first of the two looks at it.
            flag::register_conditional_shutdown(signal, Interrupt::STATUS, asked.clone())?;
            flag::register(signal, asked.clone())?;
        }
        Ok(Interrupt { asked })
    }

    /// Whether the process was asked to end.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
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
        assert!(!interrupt.is_asked());
        raise(SIGTERM).expect("a known signal");
        assert!(interrupt.is_asked());
        raise(SIGTERM).expect("a known signal");
        unreachable!("the second signal ends the process");
    }
}
