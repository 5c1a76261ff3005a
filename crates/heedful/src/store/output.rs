//! An output file of a command. It is opened before the work begins, so that an error cannot lose the result.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::durable::WriteError;
use super::unfinished::{Unfinished, remove_leftovers};
use crate::system::is_same_file;

/// An output file. [`OutputFile::finish`] creates it atomically; without it nothing is created.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    destination: Destination,
    /// Number of bytes added so far.
    bytes: u64,
}

#[derive(Debug)]
enum Destination {
    /// A regular file, which may exist already.
    File(Unfinished),
    /// Devices and pipes cannot be replaced; they are written directly.
    Device(File),
}

/// Why a path cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The path is a folder, but a file is needed.
    #[error("cannot write {path}: it is a folder; name a file in it")]
    IsFolder {
        /// The path.
        path: PathBuf,
    },
    /// The path is a file, but a folder is needed.
    #[error("cannot write into {path}: it is a file; name a folder")]
    IsFile {
        /// The path.
        path: PathBuf,
    },
    /// The folder of the file does not exist.
    #[error("cannot write {path}: there is no folder {}; create it, or name another file", folder.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// The file is write-protected.
    #[error("cannot write {path}: it is write-protected; name another file")]
    Protected {
        /// The file.
        path: PathBuf,
    },
    /// The file is an input of the command.
    #[error(
        "{path} is the same file as {input}, which is read: name another file, or add --force to replace it"
    )]
    IsInput {
        /// The file.
        path: PathBuf,
        /// The input, as given by the user.
        input: PathBuf,
    },
    /// The operating system reports an error.
    #[error("cannot write {path}: {cause}; name another location")]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
}

impl crate::error::Cause for OutputError {}

impl OutputFile {
    /// Opens a file for writing. It must not be one of `inputs`, the files that the command reads.
    pub fn open(path: &Path, inputs: &[&Path]) -> Result<OutputFile, OutputError> {
        let owned = || path.to_owned();
        if let Some(input) = inputs.iter().find(|input| is_same_file(path, input)) {
            return Err(OutputError::IsInput { path: owned(), input: input.to_path_buf() });
        }
        let refused = |cause| OutputError::Refused { path: owned(), cause };
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err(OutputError::IsFolder { path: owned() }),
            Ok(metadata) if !metadata.is_file() => {
                let device = OpenOptions::new().write(true).open(path).map_err(refused)?;
                return Ok(OutputFile { path: owned(), destination: Destination::Device(device), bytes: 0 });
            }
            Ok(metadata) if metadata.permissions().readonly() => {
                return Err(OutputError::Protected { path: owned() });
            }
            _ => {}
        }
        let folder = folder_of(path);
        if !folder.is_dir() {
            return Err(OutputError::NoFolder { path: owned(), folder: folder.to_owned() });
        }
        // A leftover that cannot be removed is harmless.
        let _ = remove_leftovers(folder);
        let unfinished = Unfinished::for_target(path).map_err(refused)?;
        Ok(OutputFile { path: owned(), destination: Destination::File(unfinished), bytes: 0 })
    }

    /// Appends to the contents.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.bytes += bytes.len() as u64;
        let written = match &mut self.destination {
            Destination::File(unfinished) => unfinished.write_all(bytes),
            Destination::Device(device) => device.write_all(bytes),
        };
        written.map_err(|cause| WriteError::new(&self.path, self.bytes, cause))
    }

    /// Appends the last or only part of the contents and finishes the file.
    pub fn finish_with(mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.add(bytes)?;
        self.finish()
    }

    /// Finishes the file: it gets its final name.
    pub fn finish(self) -> Result<(), WriteError> {
        let finished = match self.destination {
            Destination::File(unfinished) => unfinished.finish(),
            Destination::Device(mut device) => device.flush(),
        };
        finished.map_err(|cause| WriteError::new(&self.path, self.bytes, cause))
    }

    /// Finishes the file with `head` in front of everything that was added. Devices do not support this.
    pub fn finish_behind(mut self, head: &[u8]) -> Result<(), WriteError> {
        self.bytes += head.len() as u64;
        let finished = match self.destination {
            Destination::File(unfinished) => unfinished.finish_behind(head),
            Destination::Device(_) => Err(io::ErrorKind::NotSeekable.into()),
        };
        finished.map_err(|cause| WriteError::new(&self.path, self.bytes, cause))
    }

    /// Whether it is a device, which is written sequentially.
    pub fn is_device(&self) -> bool {
        matches!(self.destination, Destination::Device(_))
    }

    /// The path, as given by the user.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Checks that files can be written into a folder, which need not exist yet.
pub fn check_folder(folder: &Path) -> Result<(), OutputError> {
    let refused = |cause| OutputError::Refused { path: folder.to_owned(), cause };
    if folder.is_dir() {
        let _ = remove_leftovers(folder);
        return Unfinished::for_target(&folder.join("probe")).map(drop).map_err(refused);
    }
    if folder.exists() {
        return Err(OutputError::IsFile { path: folder.to_owned() });
    }
    let parent = folder.ancestors().skip(1).find(|parent| parent.as_os_str().is_empty() || parent.exists());
    let parent = parent.filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(OutputError::IsFile { path: parent.to_owned() });
    }
    Unfinished::for_target(&parent.join("probe")).map(drop).map_err(refused)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritable_paths_are_rejected_before_anything_is_written() {
        let temporary = tempfile::tempdir().expect("a folder");
        let at = |name: &str| temporary.path().join(name);
        fs::write(at("input"), "years of work").expect("a writable folder");
        fs::hard_link(at("input"), at("link")).expect("a new name");
        fs::write(at("protected"), "mine").expect("a writable folder");
        let mut permissions = at("protected").metadata().expect("a file").permissions();
        permissions.set_readonly(true);
        fs::set_permissions(at("protected"), permissions).expect("it is ours");
        for (name, expected) in [
            (".", "is a folder"),
            ("nowhere/out", "there is no folder"),
            ("input", "which is read"),
            ("./input", "which is read"),
            #[cfg(unix)]
            ("link", "which is read"),
            ("protected", "write-protected"),
        ] {
            let message = OutputFile::open(&at(name), &[&at("input")]).expect_err("not writable").to_string();
            assert!(message.contains(expected), "{name}: {message}");
        }
        assert_eq!(fs::read_dir(temporary.path()).expect("a folder").count(), 3);
        assert_eq!(fs::read(at("input")).expect("still there"), b"years of work");
    }

    #[test]
    fn finish_behind_puts_the_head_first() {
        let temporary = tempfile::tempdir().expect("a folder");
        let path = temporary.path().join("out");
        let mut output = OutputFile::open(&path, &[]).expect("a writable folder");
        let numbers = b"numbers".repeat(1 << 18);
        output.add(&numbers).expect("a writable folder");
        output.finish_behind(b"head ").expect("a writable folder");
        assert_eq!(fs::read(&path).expect("it is there"), [b"head ", numbers.as_slice()].concat());
        assert_eq!(fs::read_dir(temporary.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn a_file_appears_when_it_is_finished() {
        let temporary = tempfile::tempdir().expect("a folder");
        let path = temporary.path().join("out");
        let mut output = OutputFile::open(&path, &[]).expect("a writable folder");
        output.add(b"a").expect("a writable folder");
        assert!(!path.exists());
        output.finish_with(b"b").expect("a writable folder");
        assert_eq!(fs::read(&path).expect("it is there"), b"ab");
        assert_eq!(fs::read_dir(temporary.path()).expect("a folder").count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_and_not_replaced() {
        OutputFile::open(Path::new("/dev/null"), &[])
            .expect("writable")
            .finish_with(b"away")
            .expect("written");
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    fn a_folder_is_checked_without_being_created() {
        let temporary = tempfile::tempdir().expect("a folder");
        fs::write(temporary.path().join("file"), "mine").expect("a writable folder");
        check_folder(&temporary.path().join("new/folder")).expect("it can be created");
        check_folder(temporary.path()).expect("it is there");
        for name in ["file", "file/folder"] {
            let message = check_folder(&temporary.path().join(name)).expect_err("a file").to_string();
            assert!(message.contains("it is a file"), "{message}");
        }
        assert_eq!(fs::read_dir(temporary.path()).expect("a folder").count(), 1);
    }
}
