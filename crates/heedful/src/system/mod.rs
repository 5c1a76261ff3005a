//! What operating systems do differently. Nothing else in these crates names one (`cargo xtask tidy` checks this), but for
//! the two system calls of the tensor crate, which take unsafe code.

#[cfg(not(unix))]
mod elsewhere;
#[cfg(unix)]
mod unix;

mod machine;

use std::io;
use std::path::Path;

#[cfg(not(unix))]
use elsewhere as own;
#[cfg(unix)]
use unix as own;

pub use machine::memory;
pub(crate) use machine::{allowed_cores, host_name};
pub use own::REBINDS_PORTS;

/// Whether both paths lead to the same file or folder, through whatever links. False if one of them leads nowhere. Hard links
/// are recognised on Unix only.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    own::identity(one).is_ok_and(|one| own::identity(other).is_ok_and(|other| one == other))
}

/// Makes the name of a file durable: without this a power failure may lose it, though the file's bytes are safe. Only Unix
/// offers this; elsewhere nothing is left to do after the rename.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    own::sync_folder_of(path)
}

/// Asks for this many open files and connections at a time. The system may grant fewer.
pub fn allow_open_files(count: u64) {
    own::allow_open_files(count);
}

/// Limits what this process may allocate, where the system can: more ends it.
pub fn limit_memory(bytes: u64) -> io::Result<()> {
    own::limit_memory(bytes)
}

/// What a signal asks a program for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP: the terminal is gone. To a server: reload.
    Hangup,
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGQUIT: Ctrl-\.
    Quit,
    /// SIGTERM: the system's request to end.
    Terminate,
}

impl Signal {
    /// Every signal that programs heed.
    pub const ALL: [Signal; 4] = [Signal::Hangup, Signal::Interrupt, Signal::Quit, Signal::Terminate];

    /// Its number, the same on all systems that have it.
    pub fn number(self) -> i32 {
        match self {
            Signal::Hangup => 1,
            Signal::Interrupt => 2,
            Signal::Quit => 3,
            Signal::Terminate => 15,
        }
    }

    /// The exit status of a program that it ends, as shells report it.
    pub fn exit_status(self) -> u8 {
        128 + self.number() as u8
    }

    /// Whether the process was started with the signal ignored, as `nohup` does. Not every system tells.
    pub fn is_ignored(self) -> bool {
        own::is_ignored(self.number())
    }
}

/// Signals that wait to be heeded instead of ending the process. One that arrives again before it was waited for counts once.
#[derive(Debug)]
pub struct Signals {
    listener: own::Listener,
}

impl Signals {
    /// Heeds these from here on, of those that the system has.
    pub fn listen(signals: &[Signal]) -> io::Result<Signals> {
        own::Listener::new(signals.iter().map(|signal| signal.number())).map(|listener| Signals { listener })
    }

    /// The next signal, as soon as there is one.
    pub fn wait(&mut self) -> Signal {
        let number = self.listener.wait();
        let known = Signal::ALL.into_iter().find(|signal| signal.number() == number);
        known.expect("only known signals are listened to")
    }
}
