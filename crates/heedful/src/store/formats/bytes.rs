//! The bytes of a file, or a slice of them, without a copy.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use heedful_tensor::cpu::gemm::MappedFile;

use super::FormatError;

/// Bytes in a mapped file or in memory; clones and slices share them.
#[derive(Clone)]
pub struct FileBytes {
    whole: Whole,
    range: Range<usize>,
}

#[derive(Clone)]
enum Whole {
    Mapped(MappedFile),
    Owned(Arc<Vec<u8>>),
}

impl FileBytes {
    /// Maps a file. It must not be changed while it is used.
    pub fn open(path: &Path) -> Result<FileBytes, FormatError> {
        let mapped = || {
            let file = File::open(path)?;
            if !file.metadata()?.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
            }
            MappedFile::open(&file)
        };
        let read = |error| FormatError::Read { file: path.display().to_string(), error };
        mapped().map(FileBytes::from).map_err(read)
    }

    /// The mapped file and the offset of these bytes in it; `None` for bytes in memory.
    pub(crate) fn mapped(&self) -> Option<(&MappedFile, usize)> {
        match &self.whole {
            Whole::Mapped(file) => Some((file, self.range.start)),
            Whole::Owned(_) => None,
        }
    }

    /// A slice of the bytes.
    ///
    /// # Panics
    /// If the range is out of bounds.
    pub fn slice(&self, part: Range<usize>) -> FileBytes {
        assert!(part.start <= part.end && part.end <= self.len(), "bytes {part:?} of {} bytes", self.len());
        FileBytes {
            whole: self.whole.clone(),
            range: self.range.start + part.start..self.range.start + part.end,
        }
    }
}

impl PartialEq for FileBytes {
    fn eq(&self, other: &FileBytes) -> bool {
        self[..] == other[..]
    }
}

impl From<MappedFile> for FileBytes {
    fn from(file: MappedFile) -> FileBytes {
        let range = 0..file.len();
        FileBytes { whole: Whole::Mapped(file), range }
    }
}

impl From<Vec<u8>> for FileBytes {
    fn from(bytes: Vec<u8>) -> FileBytes {
        let range = 0..bytes.len();
        FileBytes { whole: Whole::Owned(Arc::new(bytes)), range }
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.whole {
            Whole::Mapped(file) => &file[self.range.clone()],
            Whole::Owned(bytes) => &bytes[self.range.clone()],
        }
    }
}

impl std::fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.len())
    }
}
