//! Shared code of the kits: folders with programs built here, for machines without Rust.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::{cargo, root};

/// An executable built by cargo: kind, name and path.
pub(crate) struct Built {
    kind: String,
    name: String,
    path: PathBuf,
}

/// Builds programs and tests in one cargo call, so that dependencies are built once. `how` are cargo's flags
/// for profile and packages.
pub(crate) fn build(how: &[&str], programs: &[&str], tests: &[&str]) -> Result<Vec<Built>> {
    let mut command = cargo(["build", "--message-format", "json-render-diagnostics"]);
    command.args(how);
    command.args(programs.iter().flat_map(|name| ["--bin", name]));
    command.args(tests.iter().flat_map(|name| ["--test", name]));
    let output = command.stderr(Stdio::inherit()).output().context("could not start cargo")?;
    if !output.status.success() {
        bail!("the build failed ({})", output.status);
    }
    let lines = String::from_utf8(output.stdout).context("cargo's messages are not UTF-8")?;
    let executable = |line: &str| {
        let message: Value = serde_json::from_str(line).ok()?;
        Some(Built {
            kind: message["target"]["kind"][0].as_str()?.to_owned(),
            name: message["target"]["name"].as_str()?.to_owned(),
            path: message["executable"].as_str()?.into(),
        })
    };
    Ok(lines.lines().filter_map(executable).collect())
}

/// The path of a program (`bin`) or `test`.
pub(crate) fn path_of(built: &[Built], kind: &str, name: &str) -> Result<PathBuf> {
    let mut made = built.iter().filter(|one| one.kind == kind && one.name == name);
    match (made.next(), made.next()) {
        (Some(one), None) => Ok(one.path.clone()),
        (None, _) => bail!("cargo built no {kind} {name}"),
        (Some(_), Some(_)) => bail!("two packages have a {kind} {name}"),
    }
}

/// Removes a folder of an earlier kit, so that no outdated program remains in it.
pub(crate) fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

/// Copies a file and creates its folder if missing.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("a file of the kit has no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Copies the files of a folder of the project.
pub(crate) fn copy_all(from: &str, to: &Path) -> Result<()> {
    let from = root().join(from);
    for entry in fs::read_dir(&from).with_context(|| format!("cannot list {}", from.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
