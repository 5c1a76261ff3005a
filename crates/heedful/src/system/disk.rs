//! Disk space.

use std::fs::File;
use std::io;
use std::path::Path;

use fs4::FileExt;

/// Free bytes on the disk of a folder.
pub(crate) fn available_space(folder: &Path) -> io::Result<u64> {
    fs4::available_space(folder)
}

/// Reserves blocks for a file of this size. Not every file system supports this.
pub(crate) fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    FileExt::allocate(file, bytes)
}
