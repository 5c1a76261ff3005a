//! `cargo xtask story`: runs the commands of the chapters in `docs/story`, and writes their output and
//! pictures into them.
//!
//! The commands are defined only in the chapters. A chapter has two files, `NN-NAME.md` and, in Chinese,
//! `NN-NAME.zh.md`:
//!
//! - A block of `sh` is run by a shell with the release binary as `heedful`, in one folder for all chapters,
//!   so that a chapter may use files of earlier ones.
//! - A block below `<!-- printed -->` gets the output of the `sh` block above it; `<!-- printed: 3 lines from
//!   TEXT -->` takes that many lines, from the first one that contains the text.
//! - A picture `pictures/NAME.svg` is the file `NAME.svg` that a command wrote; below `<!-- drawn: FILE.html
//!   TITLE -->` it is the chart of that title in a report.
//!
//! `HEEDFUL_STORY_OF` names a binary to use instead of this tree's.

mod chapter;
mod commands;
mod picture;
mod rules;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::step;
use crate::workspace::{cargo, files, release_program, root, target};
use chapter::Chapter;
pub(crate) use commands::check as check_commands;
pub(crate) use rules::check;

/// Folders of the chapters and their pictures, relative to the root.
const FOLDER: &str = "docs/story/";
const PICTURES: &str = "docs/story/pictures/";

pub(crate) fn run() -> Result<()> {
    let program = program()?;
    let folder = target().join("story");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    fs::create_dir_all(root().join(PICTURES))?;
    for path in files()?.iter().filter(|path| chapter::is_english(path)) {
        step::timed(path, || update(path, &program, &folder))?;
    }
    Ok(())
}

/// Only checks that the commands exist.
pub(crate) fn check_only() -> Result<()> {
    check_commands(&program()?)
}

/// The release binary of this tree, or the one named by `HEEDFUL_STORY_OF`.
fn program() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os("HEEDFUL_STORY_OF") {
        return fs::canonicalize(&program).with_context(|| format!("there is no {}", program.display()));
    }
    step::command(&mut cargo(["build", "--release"]))?;
    Ok(release_program())
}

/// Runs a chapter's commands, and updates its two files and its pictures.
fn update(path: &str, program: &Path, folder: &Path) -> Result<()> {
    let english = read(path)?;
    let mut printed = Vec::new();
    for script in Chapter::new(&english).scripts() {
        printed.push(output(&script, program, folder)?);
    }
    for picture in Chapter::new(&english).pictures() {
        let drawn = picture.drawing(folder)?;
        fs::write(root().join(PICTURES).join(picture.name), drawn)?;
    }
    for path in [path.to_owned(), chapter::chinese(path)] {
        let filled = Chapter::new(&read(&path)?).filled(&printed).with_context(|| path.clone())?;
        fs::write(root().join(&path), filled)?;
    }
    Ok(())
}

fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("could not read {path}"))
}

/// Standard output of a script; its standard error is passed through.
fn output(script: &str, program: &Path, folder: &Path) -> Result<String> {
    let mut search = OsString::from(program.parent().context("the program has no folder")?);
    if let Some(path) = std::env::var_os("PATH") {
        search.push(":");
        search.push(path);
    }
    let mut shell = Command::new("sh");
    shell.args(["-ec", script]).current_dir(folder).env("PATH", search).stderr(Stdio::inherit());
    let output = shell.output().context("could not start sh")?;
    if !output.status.success() {
        bail!("these commands failed ({}):\n{script}", output.status);
    }
    String::from_utf8(output.stdout).context("the output is not UTF-8")
}
