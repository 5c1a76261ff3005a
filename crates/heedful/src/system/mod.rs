//! Code that differs between operating systems. No other code in these crates depends on one (`cargo xtask
//! tidy` checks this), except two system calls in the tensor crate that need unsafe code.

#[cfg(target_family = "wasm")]
mod browser;
#[cfg(not(any(unix, target_family = "wasm")))]
mod elsewhere;
#[cfg(unix)]
mod unix;

#[cfg_attr(target_family = "wasm", path = "no_disk.rs")]
mod disk;
mod machine;

use std::io;
use std::path::Path;

#[cfg(target_family = "wasm")]
use browser as own;
#[cfg(not(any(unix, target_family = "wasm")))]
use elsewhere as own;
#[cfg(unix)]
use unix as own;

pub(crate) use disk::{allocate, available_space};
pub use machine::memory;
pub(crate) use machine::{allowed_cores, host_name};
pub use own::REBINDS_PORTS;

/// Whether both paths refer to the same file or folder, following links; false if one does not exist. Hard
/// links are recognised on Unix only.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    own::identity(one).is_ok_and(|one| own::identity(other).is_ok_and(|other| one == other))
}

/// Syncs the folder of a file, which makes the file's name durable: without this, a power failure may lose
/// the name although the bytes are safe. Does nothing outside Unix, which is the only system that offers
/// this.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    own::sync_folder_of(path)
}

/// Raises the limit of open files and connections to `count`. The system may grant fewer.
pub fn allow_open_files(count: u64) {
    own::allow_open_files(count);
}

/// Limits the memory of this process on systems that support it: allocating more ends the process.
pub fn limit_memory(bytes: u64) -> io::Result<()> {
    own::limit_memory(bytes)
}

/// A signal to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP: the terminal was closed. A server reloads.
    Hangup,
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGQUIT: Ctrl-\.
    Quit,
    /// SIGTERM: a request to terminate.
    Terminate,
}

impl Signal {
    /// All handled signals.
    pub const ALL: [Signal; 4] = [Signal::Hangup, Signal::Interrupt, Signal::Quit, Signal::Terminate];

    /// The signal number, the same on all systems that have the signal.
    pub fn number(self) -> i32 {
        match self {
            Signal::Hangup => 1,
            Signal::Interrupt => 2,
            Signal::Quit => 3,
            Signal::Terminate => 15,
        }
    }

    /// The exit status of a program that the signal ended, as shells report it.
    pub fn exit_status(self) -> u8 {
        128 + self.number() as u8
    }

    /// Whether the process was started with the signal ignored, as by `nohup`; false if the system does not
    /// report it.
    pub fn is_ignored(self) -> bool {
        own::is_ignored(self.number())
    }
}

/// Signals that are queued instead of ending the process. A signal that arrives again before
/// [`Signals::wait`] returned it counts once.
#[derive(Debug)]
pub struct Signals {
    listener: own::Listener,
}

impl Signals {
    /// Starts to catch these signals; those that the system does not have are ignored.
    pub fn listen(signals: &[Signal]) -> io::Result<Signals> {
        own::Listener::new(signals.iter().map(|signal| signal.number())).map(|listener| Signals { listener })
    }

    /// Blocks until the next signal.
    pub fn wait(&mut self) -> Signal {
        let number = self.listener.wait();
        let known = Signal::ALL.into_iter().find(|signal| signal.number() == number);
        known.expect("only known signals are listened to")
    }
}
