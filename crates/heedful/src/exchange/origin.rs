//! Origin and licence files of a model, which are copied to every model derived from it.

use std::io;
use std::path::Path;

use crate::store::durable::{self, WriteError};
use crate::tasks::folder::read_model_file;

/// The file in which an import describes a model's origin.
pub const ORIGIN: &str = "ORIGIN.md";
/// Common names of licence files.
pub(super) const LICENCES: [&str; 3] = ["LICENSE", "LICENSE.txt", "LICENSE.md"];

/// The names of all origin and licence files.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    [ORIGIN].into_iter().chain(LICENCES)
}

/// Copies the origin and licence files of a model's folder or package into another folder, which may be the
/// same. An existing licence is not overwritten.
pub fn copy_origin(from: &Path, to: &Path) -> Result<(), WriteError> {
    for name in names() {
        let path = to.join(name);
        // The folder may already have its own licence.
        if name != ORIGIN && path.exists() {
            continue;
        }
        match read_model_file(from, name) {
            Ok(Some(text)) => durable::write_bytes(&path, &text)?,
            Ok(None) => {}
            Err(error) => {
                return Err(WriteError::Failed { path, cause: io::Error::other(error.to_string()) });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_origin_and_licence_files_are_copied() {
        let (from, to) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        for name in [ORIGIN, "LICENSE", "other"] {
            fs::write(from.path().join(name), name).expect("a file");
        }
        copy_origin(from.path(), to.path()).expect("readable files");
        copy_origin(from.path(), from.path()).expect("the same folder");
        let files = fs::read_dir(to.path()).expect("a folder");
        let mut names: Vec<_> = files.map(|file| file.expect("a file").file_name()).collect();
        names.sort();
        assert_eq!(names, ["LICENSE", ORIGIN]);
        for name in [ORIGIN, "LICENSE"] {
            fs::write(from.path().join(name), "another").expect("a file");
        }
        copy_origin(from.path(), to.path()).expect("readable files");
        let text = |name: &str| fs::read_to_string(to.path().join(name)).expect("a text");
        assert_eq!([text(ORIGIN), text("LICENSE")], ["another", "LICENSE"]);
        let error = copy_origin(from.path(), &to.path().join("missing")).expect_err("no such folder");
        assert!(error.to_string().contains(ORIGIN), "{error}");
    }
}
