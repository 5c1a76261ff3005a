//! Files that are either the old one or the new one, never half of it.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Writes beside `path`, syncs, and renames. When `write` or the disk fails, what was at `path` stays as it was and
/// nothing is left beside it.
pub(crate) fn replace_file<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let beside = beside(path);
    let outcome = write_and_sync(&beside, write);
    match outcome {
        Ok(value) => {
            fs::rename(&beside, path)?;
            sync_folder(path)?;
            Ok(value)
        }
        Err(error) => {
            // The first error is the one to report; a file that was never made cannot be removed.
            let _ = fs::remove_file(&beside);
            Err(error)
        }
    }
}

fn write_and_sync<T, E: From<io::Error>>(
    beside: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, E>,
) -> Result<T, E> {
    let mut file = BufWriter::with_capacity(1 << 18, File::create(beside)?);
    let value = write(&mut file)?;
    file.flush()?;
    file.get_ref().sync_all()?;
    Ok(value)
}

/// `corpus.bin` becomes `corpus.bin.partial`: in the same folder, so that the rename never crosses file systems.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// Without this the rename itself may be lost when the power fails. Only Unix lets a folder be opened.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        replace_file(&path, |file| file.write_all(b"old")).expect("a good write");
        let failed = replace_file(&path, |file| {
            file.write_all(b"half")?;
            Err::<(), _>(io::Error::other("no space"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).expect("the old file"), b"old");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
