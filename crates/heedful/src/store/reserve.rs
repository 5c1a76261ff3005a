//! Reserves disk space for a file that is written later.

use std::io;
use std::path::Path;

use super::unfinished::Unfinished;
use crate::system;

/// Reserved disk space: an unfinished file with preallocated blocks. Dropping it frees the space for the real
/// file.
#[derive(Debug)]
pub(crate) struct Reserve {
    _placeholder: Unfinished,
}

impl Reserve {
    /// Reserves this many bytes on the disk of `target`. Not every file system supports this.
    pub(crate) fn for_target(target: &Path, bytes: u64) -> io::Result<Reserve> {
        let mut placeholder = Unfinished::for_target(target)?;
        system::allocate(placeholder.writer().get_ref(), bytes)?;
        Ok(Reserve { _placeholder: placeholder })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn space_is_reserved_until_the_reserve_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = || fs::read_dir(folder.path()).expect("a folder").count();
        let Ok(reserve) = Reserve::for_target(&folder.path().join("model"), 100_000) else {
            eprintln!("the file system of {} cannot preallocate", folder.path().display());
            return;
        };
        assert_eq!(files(), 1);
        drop(reserve);
        assert_eq!(files(), 0);
    }
}
