//! Linux, macOS and other Unix systems.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use signal_hook::iterator;

/// Whether servers should set `SO_REUSEADDR`: otherwise the port stays unavailable for a minute after a
/// restart.
pub const REBINDS_PORTS: bool = true;

pub(super) fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = path.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

pub(super) fn allow_open_files(count: u64) {
    let _ = rlimit::increase_nofile_limit(count);
}

pub(super) fn limit_memory(bytes: u64) -> io::Result<()> {
    rlimit::setrlimit(rlimit::Resource::AS, bytes, bytes)?;
    // No core dump when the limit is hit.
    rlimit::setrlimit(rlimit::Resource::CORE, 0, 0)
}

/// False on systems without /proc.
pub(super) fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}

#[derive(Debug)]
pub(super) struct Listener(iterator::Signals);

impl Listener {
    pub(super) fn new(signals: impl Iterator<Item = i32>) -> io::Result<Listener> {
        iterator::Signals::new(signals).map(Listener)
    }

    pub(super) fn wait(&mut self) -> i32 {
        self.0.forever().next().expect("nobody closes the listener")
    }
}
