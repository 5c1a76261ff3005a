//! [`disk`](super) on systems without a disk.

use std::fs::File;
use std::io;
use std::path::Path;

pub(crate) fn available_space(_folder: &Path) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn allocate(_file: &File, _bytes: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
