//! WebAssembly in a browser: no files, no signals, no limits.

use std::io;
use std::path::{Path, PathBuf};

/// There are no ports.
pub const REBINDS_PORTS: bool = false;

pub(super) fn identity(_path: &Path) -> io::Result<PathBuf> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn sync_folder_of(_path: &Path) -> io::Result<()> {
    Ok(())
}

pub(super) fn allow_open_files(_count: u64) {}

pub(super) fn limit_memory(_bytes: u64) -> io::Result<()> {
    Ok(())
}

pub(super) fn is_ignored(_signal: i32) -> bool {
    false
}

/// Never made.
#[derive(Debug)]
pub(super) enum Listener {}

impl Listener {
    pub(super) fn new(_signals: impl Iterator<Item = i32>) -> io::Result<Listener> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn wait(&mut self) -> i32 {
        match *self {}
    }
}
