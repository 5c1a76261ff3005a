//! What systems do differently.

use std::io;
use std::path::Path;

/// Whether both paths lead to the same file or folder, through whatever links. False if one of them leads nowhere.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    identity(one).is_ok_and(|one| identity(other).is_ok_and(|other| one == other))
}

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = path.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Hard links are not recognised.
#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<std::path::PathBuf> {
    path.canonicalize()
}

/// Makes the name of a file durable: without this a power failure may lose it, though the file's bytes are safe.
#[cfg(unix)]
pub(super) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    std::fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Other systems cannot open a folder; the rename itself is all they offer.
#[cfg(not(unix))]
pub(super) fn sync_folder_of(_path: &Path) -> io::Result<()> {
    Ok(())
}
