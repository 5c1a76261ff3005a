//! Paths of the workspace: its root, target folder and cargo.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The folder with the workspace's Cargo.toml.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies directly below the workspace root")
}

/// The build folder, which git ignores.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The program that `cargo build --release` writes.
pub(crate) fn release_program() -> PathBuf {
    target().join("release").join(format!("heedful{}", std::env::consts::EXE_SUFFIX))
}

/// The cargo that started this process, which keeps a toolchain chosen with `+name`.
pub(crate) fn cargo<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Every file that git tracks or would offer to add, relative to the root.
pub(crate) fn files() -> Result<Vec<String>> {
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
