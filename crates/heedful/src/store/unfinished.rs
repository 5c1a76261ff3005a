//! Files that are being written, each beside the one that it will replace.
//!
//! ```text
//! NAME.<process>-<number>.heedful.tmp → sync → rename to NAME → sync the folder
//! ```
//!
//! An unfinished file is removed when its writer fails or is dropped, and by [`abandon_all`] when a signal ends the process.
//! What a killed process leaves is recognised by its ending and by its lock, which nobody holds any more: other files of the
//! user are never touched, nor those that another process is writing.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::system;

const ENDING: &str = ".heedful.tmp";
const BUFFER: usize = 1 << 20;

/// The unfinished files of this process.
static BEING_WRITTEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file that is not there yet: [`Unfinished::finish`] gives it its name. Dropped before, it leaves nothing.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: PathBuf,
    target: PathBuf,
    /// Its lock is held until it has its name.
    file: BufWriter<File>,
}

impl Unfinished {
    /// Begins a file beside `target`, in whose place it will be. A link is followed: what it points to is replaced.
    pub(crate) fn beside(target: &Path) -> io::Result<Unfinished> {
        let target = if target.is_symlink() { target.canonicalize()? } else { target.to_owned() };
        loop {
            let path = own_name(&target);
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

    /// Puts the file in its place, when its bytes are safe on the disk.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        fs::rename(&self.path, &self.target)?;
        system::sync_folder_of(&self.target)
    }

    /// Puts the file in its place, with `head` before all that was written.
    pub(super) fn finish_behind(mut self, head: &[u8]) -> io::Result<()> {
        self.file.flush()?;
        let written = self.file.get_mut();
        written.rewind()?;
        let mut whole = Unfinished::beside(&self.target)?;
        whole.write_all(head)?;
        io::copy(written, &mut whole)?;
        whole.finish()
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
        // After `finish` there is no file of this name.
        let _ = fs::remove_file(&self.path);
        forget(&self.path);
    }
}

/// Removes the unfinished files of this process and lets it begin no others: to be called before a signal ends it.
pub fn abandon_all() {
    let files = being_written();
    for path in files.iter() {
        let _ = fs::remove_file(path);
    }
    // Whoever wants to begin a file waits for the end of the process.
    std::mem::forget(files);
}

/// Removes the unfinished files that killed processes left in `folder`.
pub(crate) fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let is_ours = entry.file_name().to_string_lossy().ends_with(ENDING) && entry.file_type()?.is_file();
        if is_ours && is_abandoned(&entry.path()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A name that no other file has: other processes and threads may write the same target.
fn own_name(target: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut name = target.as_os_str().to_owned();
    name.push(format!(".{}-{}{ENDING}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    name.into()
}

/// A new, locked file; `None` if it was taken for a leftover before it was locked.
fn create(path: &Path) -> io::Result<Option<File>> {
    let file = match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
        // A process with the same number was killed here.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        created => created?,
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        // Without locks on this disk, nobody removes leftovers either.
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
    fn a_file_that_is_not_finished_leaves_nothing_and_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        fs::write(&path, "old").expect("room enough");
        let mut unfinished = Unfinished::beside(&path).expect("a writable folder");
        unfinished.write_all(b"half of the n").expect("room enough");
        drop(unfinished);
        assert_eq!(names(folder.path()), ["out"]);
        assert_eq!(fs::read(&path).expect("the old file"), b"old");
    }

    #[test]
    fn two_writers_of_one_file_do_not_mix() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out");
        let mut writers = [(); 2].map(|()| Unfinished::beside(&path).expect("a writable folder"));
        for (number, writer) in writers.iter_mut().enumerate() {
            write!(writer, "{number}").expect("room enough");
        }
        for (number, writer) in writers.into_iter().enumerate() {
            writer.finish().expect("room enough");
            assert_eq!(fs::read_to_string(&path).expect("a whole file"), number.to_string());
        }
        assert_eq!(names(folder.path()), ["out"]);
    }

    #[test]
    fn leftovers_of_a_kill_are_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["a", "a.tmp", "heedful.tmp", "out.123-0.heedful.tmp"] {
            fs::write(folder.path().join(name), name).expect("room enough");
        }
        let mut live = Unfinished::beside(&folder.path().join("out")).expect("a writable folder");
        live.write_all(b"new").expect("room enough");
        remove_leftovers(folder.path()).expect("files can be removed");
        live.finish().expect("another's file was not removed");
        assert_eq!(names(folder.path()), ["a", "a.tmp", "heedful.tmp", "out"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&path, "old").expect("room enough");
        std::os::unix::fs::symlink(&path, &link).expect("a new name");
        let mut unfinished = Unfinished::beside(&link).expect("a writable folder");
        unfinished.write_all(b"new").expect("room enough");
        unfinished.finish().expect("room enough");
        assert_eq!(fs::read(&path).expect("the file"), b"new");
        assert!(link.is_symlink());
    }
}
