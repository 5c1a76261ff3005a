//! `cargo xtask dist`: what is given to others.
//!
//! ```text
//! target/dist/heedful-VERSION/
//!   heedful-VERSION-TARGET.tar.gz         program, licences of what it contains, README
//!   heedful-VERSION-cp310-abi3-….whl      the Python package
//!   SHA256SUMS
//! ```
//!
//! Every program and library is stripped, and refused if it needs a newer glibc than [`platform::GLIBC`].

mod licences;
mod packages;
pub(crate) mod platform;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use self::platform::{GLIBC, TARGETS, check_glibc};
use crate::python::{self, Environment};
use crate::workspace::{cargo, root, target};
use crate::{step, targets, wheel};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROGRAM: &str = "heedful-cli";
/// What lies beside the program.
const TEXTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

pub(crate) fn run() -> Result<()> {
    ensure!(cfg!(target_os = "linux"), "dist builds programs for Linux, on Linux");
    let available = TARGETS.into_iter().map(|name| Ok((name, targets::is_installed(name)?)));
    let (built, left): (Vec<_>, Vec<_>) =
        available.collect::<Result<Vec<_>>>()?.into_iter().partition(|(_, is_installed)| *is_installed);
    let folder = target().join("dist").join(format!("heedful-{VERSION}"));
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, _) in &built {
        program(name, &folder)?;
        let wheel = wheel::build(name, &folder)?;
        println!("{}", wheel.display());
    }
    sums(&folder)?;
    println!("{}", folder.display());
    for (name, _) in left {
        println!("left out, no standard library is installed: rustup target add {name}");
    }
    Ok(())
}

/// Builds the program for a target, and packs it with what has to go along.
fn program(name: &str, folder: &Path) -> Result<()> {
    let tools = python::environment(Environment::Release)?;
    let with_glibc = format!("{name}.{GLIBC}");
    let build = ["zigbuild", "--locked", "--profile", "dist", "-p", PROGRAM, "--target", &with_glibc];
    step::command(cargo(build).env("PATH", wheel::path_with(&tools)?))?;
    let program = target().join(name).join("dist/heedful");
    check_glibc(&program)?;

    let title = format!("heedful-{VERSION}-{name}");
    let inside = folder.join(&title);
    fs::create_dir_all(&inside).with_context(|| format!("cannot make {}", inside.display()))?;
    copy(&program, &inside.join("heedful"))?;
    for text in TEXTS {
        copy(&root().join(text), &inside.join(text))?;
    }
    let packages = packages::of_program(PROGRAM, name)?;
    write(&inside.join("THIRD-PARTY-LICENSES.txt"), &licences::text(&packages)?)?;
    // Without names, times and order of this machine: the same files are the same archive.
    let plain =
        ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "--mode=u+w,go-w,a+rX"];
    let mut tar = Command::new("tar");
    tar.args(plain).args(["--use-compress-program=gzip --no-name --best", "--create", "--file"]);
    tar.arg(folder.join(format!("{title}.tar.gz"))).arg("--directory").arg(folder).arg(&title);
    step::command(&mut tar)?;
    fs::remove_dir_all(&inside).with_context(|| format!("cannot remove {}", inside.display()))
}

/// The licences of what a crate of ours contains, for a target.
pub(crate) fn licences_of(package: &str, name: &str) -> Result<String> {
    licences::text(&packages::of_program(package, name)?)
}

/// Writes the checksums of all files, in the form that `sha256sum --check` reads.
fn sums(folder: &Path) -> Result<()> {
    let mut names: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        names.push(entry?.file_name().into());
    }
    names.sort();
    let output = Command::new("sha256sum").args(&names).current_dir(folder).output();
    let output = output.context("sha256sum is missing: install coreutils")?;
    ensure!(output.status.success(), "sha256sum failed: {}", String::from_utf8_lossy(&output.stderr));
    write(&folder.join("SHA256SUMS"), &String::from_utf8_lossy(&output.stdout))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_licences_of_all_that_is_linked_go_along() {
        let packages = packages::of_program(PROGRAM, TARGETS[0]).expect("cargo knows its crates");
        let named = |name: &str| packages.values().find(|package| package.name == name);
        assert!(named("tokenizers").is_some_and(|package| package.is_foreign));
        assert!(named("heedful").is_some_and(|package| !package.is_foreign));
        for absent in ["proptest", "heedful-bench", "windows-sys", "serde_derive"] {
            assert!(named(absent).is_none(), "{absent} is no part of the program");
        }
        let licences = licences::text(&packages).expect("every crate names its licence");
        for package in packages.values().filter(|package| package.is_foreign) {
            assert!(licences.contains(&format!("\n{} {}: ", package.name, package.version)));
        }
    }
}
