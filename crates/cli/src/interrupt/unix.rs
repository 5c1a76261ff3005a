//! Signals of Unix.

use std::fs;
use std::io;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

/// Calls `arrived` with the number of every signal that asks the process to end.
pub(super) fn listen(arrived: fn(i32)) -> io::Result<()> {
    let heeded = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].into_iter().filter(|&signal| !is_ignored(signal));
    let mut signals = Signals::new(heeded)?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || signals.forever().for_each(arrived))?;
    Ok(())
}

/// Whether the process was started with the signal ignored, as `nohup` does. Systems without /proc do not say.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use signal_hook::low_level::raise;

    use super::super::{Interrupt, handle_signals};
    use super::*;

    /// In a process of its own: signals concern all threads of one.
    fn status_of(test: &str) -> Option<i32> {
        let this = std::env::current_exe().expect("a running test has a file");
        let name = format!("interrupt::unix::tests::{test}");
        let child = Command::new(this).args(["--ignored", "--exact", &name]).output();
        child.expect("the tests start again").status.code()
    }

    #[test]
    fn one_signal_ends_a_command_that_has_nothing_to_save_and_two_end_any() {
        assert_eq!(status_of("signalled_once"), Some(129));
        assert_eq!(status_of("signalled_twice"), Some(143));
    }

    #[test]
    #[ignore = "ends its process; the test above runs it"]
    fn signalled_once() {
        handle_signals().expect("signals can be listened to");
        drop(Interrupt::hold());
        raise(SIGHUP).expect("a known signal");
        loop {
            thread::park();
        }
    }

    #[test]
    #[ignore = "ends its process; the test above runs it"]
    fn signalled_twice() {
        handle_signals().expect("signals can be listened to");
        let interrupt = Interrupt::hold();
        raise(SIGTERM).expect("a known signal");
        while !interrupt.is_requested() {
            thread::yield_now();
        }
        raise(SIGTERM).expect("a known signal");
        loop {
            thread::park();
        }
    }
}
