//! Windows, and what else is not Unix.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// How often signals are looked for: there is nothing to wait on.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Here the option would let two servers have one port; without it, a port is free as soon as its server ends.
pub const REBINDS_PORTS: bool = false;

pub(super) fn identity(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// A folder cannot be opened; the rename itself is all that is offered.
pub(super) fn sync_folder_of(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// There is no limit to raise.
pub(super) fn allow_open_files(_count: u64) {}

/// There is no such limit.
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
            thread::sleep(LOOK_EVERY);
        }
    }
}
