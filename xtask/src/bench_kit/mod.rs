//! `cargo xtask bench-kit FOLDER [VERSION]`: packages the bench `translate` with its peer for a machine with
//! Python and numpy but without Rust and network.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::kit::{build, clear, copy, copy_all, path_of};
use crate::{python, step};

const PROGRAM: &str = "translate";
/// Third-party packages that the peer imports.
const PACKAGES: [&str; 2] = ["ctranslate2", "safetensors"];
/// Wheel platforms supported by Linux machines of the last years.
const PLATFORMS: [&str; 2] = ["manylinux_2_28_x86_64", "manylinux2014_x86_64"];
const SCRIPT: &str = include_str!("run.sh");

pub(crate) fn run(folder: &str, version: Option<&str>) -> Result<()> {
    let folder = Path::new(folder);
    let requirements = python::peer_requirements()?;
    let wanted = pinned(&requirements)?;
    // The same flags as `cargo xtask bench`: others would rebuild all dependencies.
    let how = ["--profile", "bench", "--package", "heedful-bench"];
    let built = step::timed("build the program of the kit", || build(&how, &[PROGRAM], &[]))?;
    for part in ["peers", "wheels", "site"] {
        clear(&folder.join(part))?;
    }
    copy(&path_of(&built, "bin", PROGRAM)?, &folder.join(PROGRAM))?;
    // Debug info for profilers is three quarters of the file, which may have to be copied over a slow
    // connection.
    step::command(Command::new("strip").arg(folder.join(PROGRAM)))?;
    copy_all("bench/peers", &folder.join("peers"))?;
    let mut pip = Command::new(python::maker());
    pip.args(["-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-deps"]);
    // pip downloads wheels for another platform only with --only-binary.
    pip.args(["--only-binary", ":all:"]).args(PLATFORMS.iter().flat_map(|name| ["--platform", name]));
    pip.args(version.iter().flat_map(|version| ["--python-version", version]));
    step::command(pip.arg("--dest").arg(folder.join("wheels")).args(wanted))?;
    let script = folder.join("run.sh");
    fs::write(&script, SCRIPT).with_context(|| format!("cannot write {}", script.display()))?;
    println!("{}: copy it to the other machine and run `sh run.sh --help` in it", folder.display());
    Ok(())
}

/// The packages of the kit with their versions, as pinned in the peers' requirements.
fn pinned(requirements: &str) -> Result<Vec<&str>> {
    let line = |package: &str| {
        let name = |line: &&str| line.split_once("==").is_some_and(|(name, _)| name == package);
        requirements.lines().find(name)
    };
    let found: Vec<&str> = PACKAGES.iter().filter_map(|package| line(package)).collect();
    if found.len() < PACKAGES.len() {
        bail!("the requirements of the peers pin only {} of {}", found.join(", "), PACKAGES.join(", "));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_requirements() {
        let found = pinned("# CTranslate2\nctranslate2==4.8.4\nnumpy==2.4.6\nsafetensors==0.8.0\n").unwrap();
        assert_eq!(found, ["ctranslate2==4.8.4", "safetensors==0.8.0"]);
        assert!(pinned("safetensors==0.8.0\n").is_err());
        assert!(pinned(&python::peer_requirements().unwrap()).is_ok());
    }
}
