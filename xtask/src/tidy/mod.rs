//! `cargo xtask tidy`: the rules of STYLE.md that neither rustfmt nor clippy checks.

mod rules;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::step;
use crate::workspace::root;

const GOLDEN_FOLDER: &str = "crates/heedful/tests/golden/";
const GOLDEN_BYTES: u64 = 3 << 20;

pub(crate) fn run() -> Result<()> {
    step::timed("tidy", || {
        let complaints = complaints()?;
        for complaint in &complaints {
            eprintln!("  {complaint}");
        }
        match complaints.len() {
            0 => Ok(()),
            1 => bail!("tidy: one complaint"),
            count => bail!("tidy: {count} complaints"),
        }
    })
}

fn complaints() -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    let mut golden_bytes = 0;
    for path in files()? {
        let bytes = fs::read(root().join(&path)).with_context(|| format!("cannot read {path}"))?;
        if path.starts_with(GOLDEN_FOLDER) {
            golden_bytes += bytes.len() as u64;
        }
        // Binary files (goldens, pictures) have no lines to check.
        if let Ok(text) = String::from_utf8(bytes) {
            rules::check(&path, &text, &mut complaints);
        }
    }
    if golden_bytes > GOLDEN_BYTES {
        complaints.push(format!(
            "{GOLDEN_FOLDER}: {golden_bytes} bytes, over {GOLDEN_BYTES}: store fewer or smaller cases"
        ));
    }
    Ok(complaints)
}

/// Every file that git tracks or would offer to add, relative to the root.
fn files() -> Result<Vec<String>> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .context("could not start git")?;
    if !listing.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&listing.stderr).trim());
    }
    let listing = String::from_utf8(listing.stdout).context("a file name is not UTF-8")?;
    let names = listing.split('\0').filter(|name| !name.is_empty());
    // A file deleted but not yet committed is still listed.
    Ok(names.filter(|name| is_file(&root().join(name))).map(str::to_owned).collect())
}

fn is_file(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_file())
}
