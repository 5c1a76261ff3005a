//! Atomic file writes: a file is replaced whole or not at all.
//!
//! ```text
//! write NAME.tmp → sync it → rename it to NAME → sync the folder
//! ```
//!
//! A kill between any two of these steps leaves the previous file in place, and at worst a `.tmp` beside it, which
//! [`remove_leftovers`] deletes at the next start.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The extension of an unfinished file.
const UNFINISHED: &str = "tmp";

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

/// Replaces the file at `path` atomically. `bytes` estimates how much `contents` writes.
pub fn write(
    path: &Path,
    bytes: u64,
    contents: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), WriteError> {
    replace(path, |out| contents(out)).map_err(|cause: io::Error| {
        let free = path.parent().and_then(|folder| fs4::available_space(folder).ok());
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                WriteError::Full { path: path.to_owned(), needed: bytes, free }
            }
            _ => WriteError::Failed { path: path.to_owned(), cause },
        }
    })
}

/// As [`write()`], for contents that are in memory.
pub fn write_bytes(path: &Path, contents: &[u8]) -> Result<(), WriteError> {
    write(path, contents.len() as u64, |out| out.write_all(contents))
}

/// As [`write()`], for contents with their own error type. When they or the disk fail, the file at `path` stays
/// unchanged and nothing is left beside it.
pub(crate) fn replace<T, E: From<io::Error>>(
    path: &Path,
    contents: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let unfinished = unfinished(path);
    let outcome = write_beside(&unfinished, contents).and_then(|value| {
        fs::rename(&unfinished, path)?;
        sync_folder(path)?;
        Ok(value)
    });
    if outcome.is_err() {
        // Removing fails if the file was never created; the first error is the one to report.
        let _ = fs::remove_file(&unfinished);
    }
    outcome
}

/// Removes the unfinished files that a killed process left in `folder`; only safe while nobody writes there.
pub fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == UNFINISHED) && path.is_file() {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(UNFINISHED);
    name.into()
}

fn write_beside<T, E: From<io::Error>>(
    unfinished: &Path,
    contents: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(unfinished)?);
    let value = contents(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    Ok(value)
}

/// Without this a power failure may lose the new name, though the file's bytes are safe.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Other systems cannot open a folder; the rename itself is all they offer.
#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// A number of bytes, displayed for people: `760 MB`.
pub struct Bytes(pub u64);

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
    use super::*;

    #[test]
    fn a_full_disk_keeps_the_old_file_and_leaves_no_rest() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("model");
        write_bytes(&path, b"old").expect("room enough");
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
    fn leftovers_of_a_kill_are_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a", "a.tmp", "b.safetensors.tmp", "tmp"] {
            fs::write(folder.path().join(name), name).expect("room enough");
        }
        remove_leftovers(folder.path()).expect("files can be removed");
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["a", "tmp"]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("nowhere").join("model");
        let message = write_bytes(&path, b"new").expect_err("no such folder").to_string();
        assert!(message.starts_with("cannot write") && message.contains("nowhere"), "{message}");
    }
}
