//! Windows and other systems that are not Unix.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// The polling interval for signals: a blocking wait is not available.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// On Windows, `SO_REUSEADDR` would let two servers bind the same port. Without it, a port is free as soon as
/// its server ends.
pub const REBINDS_PORTS: bool = false;

pub(super) fn identity(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// Folders cannot be opened and synced here; the rename is the only guarantee.
pub(super) fn sync_folder_of(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// There is no such limit here.
pub(super) fn allow_open_files(_count: u64) {}

/// Not supported here.
pub(super) fn limit_memory(_bytes: u64) -> io::Result<()> {
    Ok(())
}

pub(super) fn is_ignored(_signal: i32) -> bool {
    false
}

#[derive(Debug)]
pub(super) struct Listener(Vec<(i32, Arc<AtomicBool>)>);

impl Listener {
    pub(super) fn new(signals: impl Iterator<Item = i32>) -> io::Result<Listener> {
        let mut flags = Vec::new();
        for signal in signals.filter(|signal| [SIGINT, SIGTERM].contains(signal)) {
            let flag = Arc::new(AtomicBool::new(false));
            flag::register(signal, flag.clone())?;
            flags.push((signal, flag));
        }
        Ok(Listener(flags))
    }

    pub(super) fn wait(&mut self) -> i32 {
        loop {
            if let Some((signal, _)) = self.0.iter().find(|(_, flag)| flag.swap(false, Ordering::SeqCst)) {
                return *signal;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}
