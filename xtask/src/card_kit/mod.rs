//! `cargo xtask card-kit [FOLDER]`: a folder with all that is run on a machine with a card, which needs no Rust.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::step;
use crate::workspace::{cargo, root, target};

const PROGRAMS: [&str; 2] = ["heedful", "card"];
/// Those with tests that need a card.
const TESTS: [&str; 2] = ["gradients", "card"];
/// The peer of the race and what it imports.
const PEERS: [&str; 5] = ["card.py", "card_batches.py", "packed.py", "transformer.py", "exchange.py"];
const SCRIPT: &str = include_str!("run.sh");

pub(crate) fn run(folder: Option<&str>) -> Result<()> {
    let folder = folder.map_or_else(|| target().join("card-kit"), PathBuf::from);
    let built = step::timed("build the programs and tests of the kit", build)?;
    // What an earlier kit had and this one does not must not be run.
    for part in ["tests", "peers", "recipes"] {
        let part = folder.join(part);
        if part.exists() {
            fs::remove_dir_all(&part).with_context(|| format!("cannot remove {}", part.display()))?;
        }
    }
    for name in PROGRAMS {
        copy(&found(&built, "bin", name)?, &folder.join(name))?;
    }
    for name in TESTS {
        copy(&found(&built, "test", name)?, &folder.join("tests").join(name))?;
    }
    for name in PEERS {
        copy(&root().join("bench/peers").join(name), &folder.join("peers").join(name))?;
    }
    let recipes = root().join("recipes");
    for entry in fs::read_dir(&recipes).with_context(|| format!("cannot list {}", recipes.display()))? {
        let entry = entry?;
        copy(&entry.path(), &folder.join("recipes").join(entry.file_name()))?;
    }
    let script = folder.join("run.sh");
    fs::write(&script, SCRIPT).with_context(|| format!("cannot write {}", script.display()))?;
    println!("{}: copy it to a machine with a card and run `sh run.sh` in it", folder.display());
    Ok(())
}

/// What cargo made: its kind, its name and where it is.
struct Built {
    kind: String,
    name: String,
    path: PathBuf,
}

/// One build for all, so that dependencies are built once.
fn build() -> Result<Vec<Built>> {
    let mut command =
        cargo(["build", "--release", "--workspace", "--message-format", "json-render-diagnostics"]);
    command.args(PROGRAMS.iter().flat_map(|name| ["--bin", name]));
    command.args(TESTS.iter().flat_map(|name| ["--test", name]));
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

fn found(built: &[Built], kind: &str, name: &str) -> Result<PathBuf> {
    let mut made = built.iter().filter(|one| one.kind == kind && one.name == name);
    match (made.next(), made.next()) {
        (Some(one), None) => Ok(one.path.clone()),
        (None, _) => bail!("cargo built no {kind} {name}"),
        (Some(_), Some(_)) => bail!("two packages have a {kind} {name}"),
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("a file of the kit has no folder")?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}
