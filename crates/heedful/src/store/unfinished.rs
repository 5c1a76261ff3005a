//! Temporary files that are being written, each in the folder of the file that it will replace.
//!
//! ```text
//! NAME.<process>-<number>.heedful.tmp → sync → rename to NAME → sync the folder
//! ```
//!
//! An unfinished file is removed when its writer fails or is dropped, and by [`abandon_all`] when a signal
//! ends the process. A leftover of a killed process is recognized by its extension and by its lock, which no
//! process holds: other files of the user, and files that another process is writing, are never touched.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::system;

const EXTENSION: &str = ".heedful.tmp";
const BUFFER: usize = 1 << 20;

/// The unfinished files of this process.
static BEING_WRITTEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A temporary file, which [`Unfinished::finish`] renames to its target. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: PathBuf,
    target: PathBuf,
    /// Locked until it is renamed.
    file: BufWriter<File>,
}

impl Unfinished {
    /// Creates a temporary file in the folder of `target`, which it will replace. If `target` is a symbolic
    /// link, the file that it points to is replaced.
    pub(crate) fn for_target(target: &Path) -> io::Result<Unfinished> {
        let target = if target.is_symlink() { target.canonicalize()? } else { target.to_owned() };
        loop {
            let path = temporary_name(&target);
            being_written().push(path.clone());
            match create(&path) {
                Ok(Some(file)) => {
                    let file = BufWriter::with_capacity(BUFFER, file);
                    return Ok(Unfinished { path, target, file });
                }
                Ok(None) => forget(&path),
                Err(error) => {
                    forget(&path);
                    return Err(error);
                }
            }
        }
    }

    /// Syncs the file to disk and renames it to its target.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.path, &self.target)?;
        system::sync_folder_of(&self.target)
    }

    /// As [`Unfinished::finish`], with `head` in front of everything that was written.
    pub(super) fn finish_behind(mut self, head: &[u8]) -> io::Result<()> {
        self.file.flush()?;
        let written = self.file.get_mut();
        written.rewind()?;
        let mut complete = Unfinished::for_target(&self.target)?;
        complete.write_all(head)?;
        io::copy(written, &mut complete)?;
        complete.finish()
    }

    /// The writer of the contents.
    pub(super) fn writer(&mut self) -> &mut BufWriter<File> {
        &mut self.file
    }
}

impl Write for Unfinished {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After `finish` the temporary name does not exist.
        let _ = fs::remove_file(&self.path);
        forget(&self.path);
    }
}

/// Removes the unfinished files of this process and blocks the creation of others: to be called before a
/// signal ends the process.
pub fn abandon_all() {
    let files = being_written();
    for path in files.iter() {
        let _ = fs::remove_file(path);
    }
    // Keeps the mutex locked: threads that create files wait until the process ends.
    std::mem::forget(files);
}

/// Removes the unfinished files that killed processes left in `folder`.
pub(crate) fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_ours =
            entry.file_name().to_string_lossy().ends_with(EXTENSION) && entry.file_type()?.is_file();
        if is_ours && is_abandoned(&entry.path()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A unique name: other processes and threads may write the same target.
fn temporary_name(target: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut name = target.as_os_str().to_owned();
    name.push(format!(".{}-{}{EXTENSION}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    name.into()
}

/// A new, locked file; `None` if the name was taken, or another process removed it as a leftover before it
/// was locked.
fn create(path: &Path) -> io::Result<Option<File>> {
    let file = match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
        // A leftover of a killed process with the same id.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        created => created?,
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        // The file system has no locks, so no process removes leftovers either.
        Err(TryLockError::Error(_)) => Ok(Some(file)),
        Ok(()) => Ok(path.exists().then_some(file)),
    }
}

fn is_abandoned(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| file.try_lock().is_ok())
}

fn being_written() -> MutexGuard<'static, Vec<PathBuf>> {
    BEING_WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forget(path: &Path) {
    being_written().retain(|known| known != path);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_dropped_file_leaves_nothing_and_keeps_the_old_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        fs::write(&path, "old").expect("a writable folder");
        let mut unfinished = Unfinished::for_target(&path).expect("a writable folder");
        unfinished.write_all(b"half of the n").expect("a writable folder");
        drop(unfinished);
        assert_eq!(names(folder.path()), ["out"]);
        assert_eq!(fs::read(&path).expect("the old file"), b"old");
    }

    #[test]
    fn two_writers_of_one_file_do_not_interfere() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let mut writers = [(); 2].map(|()| Unfinished::for_target(&path).expect("a writable folder"));
        for (number, writer) in writers.iter_mut().enumerate() {
            write!(writer, "{number}").expect("a writable folder");
        }
        for (number, writer) in writers.into_iter().enumerate() {
            writer.finish().expect("a writable folder");
            assert_eq!(fs::read_to_string(&path).expect("a whole file"), number.to_string());
        }
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn only_leftovers_of_killed_processes_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a", "a.tmp", "heedful.tmp", "out.123-0.heedful.tmp"] {
            fs::write(folder.path().join(name), name).expect("a writable folder");
        }
        let mut live = Unfinished::for_target(&folder.path().join("out")).expect("a writable folder");
        live.write_all(b"new").expect("a writable folder");
        remove_leftovers(folder.path()).expect("files can be removed");
        live.finish().expect("another's file was not removed");
        assert_eq!(names(folder.path()), ["a", "a.tmp", "heedful.tmp", "out"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_is_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&path, "old").expect("a writable folder");
        std::os::unix::fs::symlink(&path, &link).expect("a new name");
        let mut unfinished = Unfinished::for_target(&link).expect("a writable folder");
        unfinished.write_all(b"new").expect("a writable folder");
        unfinished.finish().expect("a writable folder");
        assert_eq!(fs::read(&path).expect("the file"), b"new");
        assert!(link.is_symlink());
    }
}
