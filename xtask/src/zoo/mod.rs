//! `cargo xtask zoo ENGLISH`: downloads the models of `heedful models`, imports them and compares them with
//! the original implementations. Needs a network, and several GB for their libraries; not part of the tests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::kit::{build, path_of};
use crate::python::Environment;
use crate::workspace::{root, target};
use crate::{python, step};

pub(crate) fn run(english: &str) -> Result<()> {
    let english = fs::canonicalize(english)
        .with_context(|| format!("{english}: a file of sentences, one per line, is needed"))?;
    // In one build, because a separate build of the examples would use dependencies with different features.
    let how = ["--release", "--package", "heedful-cli", "--package", "heedful", "--examples"];
    let built = step::timed("build heedful and its examples", || build(&how, &["heedful"], &[]))?;
    let heedful = path_of(&built, "bin", "heedful")?;
    let examples = path_of(&built, "example", "hidden_states")?;
    let examples = examples.parent().context("a program without a folder")?;
    let python = python::environment(Environment::Zoo)?;
    let zoo = target().join("zoo");
    fs::create_dir_all(&zoo)?;
    for name in names(&heedful)? {
        fetch(&heedful, &zoo, &name)?;
    }
    step::command(Command::new(python).arg(root().join("xtask/src/zoo/check.py")).args([
        zoo.as_path(),
        &heedful,
        examples,
        &english,
    ]))
}

/// The models of the list.
fn names(heedful: &Path) -> Result<Vec<String>> {
    let output = Command::new(heedful).args(["models", "--json"]).output()?;
    let list: Value = serde_json::from_slice(&output.stdout).context("heedful models --json")?;
    let models = list["model"].as_array().context("a list of models")?;
    Ok(models.iter().filter_map(|model| model["name"].as_str()).map(str::to_owned).collect())
}

/// Runs the commands that `heedful models NAME` prints, unless the model exists already.
fn fetch(heedful: &Path, zoo: &Path, name: &str) -> Result<()> {
    if zoo.join(name).exists() {
        return Ok(());
    }
    let script = Command::new(heedful).args(["models", name]).output()?;
    if !script.status.success() {
        bail!("heedful models {name} failed");
    }
    let own = heedful.parent().map(Path::to_owned).unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    let paths = env::join_paths([own].into_iter().chain(env::split_paths(&path).collect::<Vec<PathBuf>>()))?;
    let script = String::from_utf8(script.stdout)?;
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(zoo).env("PATH", &paths);
    step::quietly(&format!("fetch and import {name}"), &mut shell)
}
