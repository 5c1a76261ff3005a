//! `cargo xtask zoo ENGLISH`: fetches the models that `heedful models` lists, imports them and compares them with their
//! originals. Needs a network, and several GB for the originals' libraries; no part of the tests.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::kit::{build, found};
use crate::python::Environment;
use crate::workspace::{root, target};
use crate::{python, step};

pub(crate) fn run(english: &str) -> Result<()> {
    let english = fs::canonicalize(english)
        .with_context(|| format!("{english}: a file of sentences, one in a line, is needed"))?;
    // In one go: alone, the examples would have dependencies with other features.
    let how = ["--release", "--package", "heedful-cli", "--package", "heedful", "--examples"];
    let built = step::timed("build heedful and its examples", || build(&how, &["heedful"], &[]))?;
    let heedful = found(&built, "bin", "heedful")?;
    let examples = found(&built, "example", "hidden_states")?;
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

/// Does what `heedful models NAME` prints, unless it was done.
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
