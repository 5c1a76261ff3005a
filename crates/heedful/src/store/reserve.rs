//! Room on a disk for a file that will be written later, whatever else fills the disk until then.

use std::io;
use std::path::Path;

use fs4::FileExt;

use super::unfinished::Unfinished;

/// Room for a file, taken by an unfinished one beside it that has nothing to say. Dropped, it is free for the file.
#[derive(Debug)]
pub(crate) struct Reserve {
    _room: Unfinished,
}

impl Reserve {
    /// Takes room for a file of so many bytes. Not every disk offers this.
    pub(crate) fn beside(target: &Path, bytes: u64) -> io::Result<Reserve> {
        let mut room = Unfinished::beside(target)?;
        room.writer().get_ref().allocate(bytes)?;
        Ok(Reserve { _room: room })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn room_is_taken_until_it_is_needed() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = || fs::read_dir(folder.path()).expect("a folder").count();
        let Ok(reserve) = Reserve::beside(&folder.path().join("model"), 100_000) else {
            eprintln!("the disk of {} offers no reserves", folder.path().display());
            return;
        };
        assert_eq!(files(), 1);
        drop(reserve);
        assert_eq!(files(), 0);
    }
}
