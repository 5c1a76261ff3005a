//! The demo's folder. The folder of an earlier demo is replaced; any other folder that is not empty is
//! refused.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The file that marks the folder of a demo.
const MARKER: &str = "DEMO.txt";
const MARKER_TEXT: &str =
    "This folder was made by `heedful demo`. The next demo replaces everything in it.\n";

/// Creates the folder, or empties it if an earlier demo created it.
pub(super) fn claim(folder: &Path) -> Result<()> {
    let name = folder.display();
    match entries(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {name}"))?;
        }
        Err(error) => return Err(error).with_context(|| format!("cannot use {name} for the demo")),
        Ok(entries) if entries.is_empty() => {}
        Ok(entries) if entries.iter().any(|entry| entry.file_name() == MARKER) => {
            // The marker file stays, so that the folder is still recognised after an interruption.
            for entry in entries.iter().filter(|entry| entry.file_name() != MARKER) {
                remove(entry).with_context(|| format!("cannot remove {}", entry.path().display()))?;
            }
        }
        Ok(_) => bail!(
            "{name} is not empty and was not created by an earlier demo: name another folder with --out"
        ),
    }
    let marker = folder.join(MARKER);
    fs::write(&marker, MARKER_TEXT).with_context(|| format!("cannot write {}", marker.display()))
}

fn entries(folder: &Path) -> io::Result<Vec<fs::DirEntry>> {
    fs::read_dir(folder)?.collect()
}

/// Links are removed, not followed.
fn remove(entry: &fs::DirEntry) -> io::Result<()> {
    if entry.file_type()?.is_dir() { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_demo_folders_are_replaced() {
        let place = tempfile::tempdir().expect("a folder");
        let (demo, other) = (place.path().join("new/demo"), place.path().join("other"));
        claim(&demo).expect("nothing is there yet");
        fs::create_dir(demo.join("data")).expect("a new name");
        fs::write(demo.join("data/train.zh"), "一").expect("enough space");
        claim(&demo).expect("a demo may be replaced");
        assert_eq!(entries(&demo).expect("a folder").len(), 1);

        fs::create_dir(&other).expect("a new name");
        claim(&other).expect("an empty folder is free");
        fs::remove_file(other.join(MARKER)).expect("it was there");
        fs::write(other.join("thesis.tex"), "years of work").expect("enough space");
        let complaint = claim(&other).expect_err("this is not a demo's").to_string();
        assert!(complaint.contains("--out"), "{complaint}");
        assert_eq!(fs::read(other.join("thesis.tex")).expect("still there"), b"years of work");

        let complaint = claim(&other.join("thesis.tex")).expect_err("a file is not a folder").to_string();
        assert!(complaint.starts_with("cannot use"), "{complaint}");
    }
}
