//! Atomic file writes: a file is replaced completely or not at all.
//!
//! If the process is killed, the previous file is unchanged. At worst an unfinished file remains in the same
//! folder ([`super::unfinished`]), which the next command that writes there removes.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::unfinished::Unfinished;
use crate::system;

/// A file could not be written; the previous one is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The disk is full.
    #[error(
        "cannot write {path}: the disk is full ({} needed, {} free): free some space or write to another disk",
        Bytes(*needed),
        free.map_or("an unknown amount".to_owned(), |free| Bytes(free).to_string())
    )]
    Full {
        /// The file.
        path: PathBuf,
        /// The size of the file in bytes.
        needed: u64,
        /// The free space in bytes, if the system reports it.
        free: Option<u64>,
    },
    /// Writing failed for any other reason.
    #[error("cannot write {path}: {cause}")]
    Failed {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
}

impl crate::error::Cause for WriteError {}

/// Replaces the file at `path` atomically. `bytes` estimates how much `contents` writes.
pub fn write(
    path: &Path,
    bytes: u64,
    contents: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), WriteError> {
    replace(path, |out| contents(out)).map_err(|cause: io::Error| WriteError::new(path, bytes, cause))
}

impl WriteError {
    /// The error for a file of `needed` bytes.
    pub(super) fn new(path: &Path, needed: u64, cause: io::Error) -> WriteError {
        let free = path.parent().and_then(|folder| system::available_space(folder).ok());
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                WriteError::Full { path: path.to_owned(), needed, free }
            }
            _ => WriteError::Failed { path: path.to_owned(), cause },
        }
    }
}

/// As [`write()`], for contents in memory.
pub fn write_bytes(path: &Path, contents: &[u8]) -> Result<(), WriteError> {
    write(path, contents.len() as u64, |out| out.write_all(contents))
}

/// As [`write()`], for contents with their own error type. On an error the file at `path` is unchanged and no
/// unfinished file is left.
pub(crate) fn replace<T, E: From<io::Error>>(
    path: &Path,
    contents: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let mut unfinished = Unfinished::for_target(path)?;
    let value = contents(unfinished.writer())?;
    unfinished.finish()?;
    Ok(value)
}

/// A number of bytes, displayed for people: `760 MB`.
pub struct Bytes(pub(crate) u64);

impl std::fmt::Display for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} bytes", self.0),
            1_000..1_000_000 => write!(f, "{:.1} kB", bytes / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} MB", bytes / 1e6),
            _ => write!(f, "{:.1} GB", bytes / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_full_disk_keeps_the_old_file_and_leaves_no_unfinished_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("model");
        write_bytes(&path, b"old").expect("a writable folder");
        let error = write(&path, 2_000_000, |out| {
            out.write_all(b"half of the n")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        let message = error.expect_err("the disk is full").to_string();
        assert!(message.contains("model: the disk is full (2.0 MB needed, "), "{message}");
        assert_eq!(fs::read(&path).expect("the old file"), b"old");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn the_error_names_a_missing_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("nowhere").join("model");
        let message = write_bytes(&path, b"new").expect_err("no such folder").to_string();
        assert!(message.starts_with("cannot write") && message.contains("nowhere"), "{message}");
    }
}
