//! `cargo xtask dist`: builds the files of a release.
//!
//! ```text
//! target/dist/heedful-VERSION/
//!   heedful-VERSION-TARGET.tar.gz         program, manual pages, completions, third-party licences, README
//!   heedful-VERSION-cp310-abi3-….whl      the Python package
//!   heedful-VERSION-site.tar.gz           the guide (`dist site`)
//!   demo-zh-en.zip, demo-en-zh.zip        the demo's models (`dist models`)
//!   SHA256SUMS                            of all files (`dist sums`)
//! ```
//!
//! On Linux, a program or library that needs a newer glibc than [`platform::GLIBC`] is refused.

mod licences;
mod packages;
pub(crate) mod platform;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use self::platform::{GLIBC, TARGETS, check_glibc};
use crate::python::{self, Environment};
use crate::workspace::{cargo, release_program, root, target};
use crate::{site, step, targets, wheel};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROGRAM: &str = "heedful-cli";
/// Files packed with the program.
const TEXTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Builds programs and wheels for all targets of this system whose standard library is installed.
pub(crate) fn run() -> Result<()> {
    let available = TARGETS.into_iter().map(|name| Ok((name, targets::is_installed(name)?)));
    let (built, left): (Vec<_>, Vec<_>) =
        available.collect::<Result<Vec<_>>>()?.into_iter().partition(|(_, is_installed)| *is_installed);
    let folder = folder()?;
    // Programs and wheels of an earlier run must not get checksums.
    fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, _) in &built {
        program(name, &folder)?;
        let wheel = wheel::build(name, &folder)?;
        println!("{}", wheel.display());
    }
    if cfg!(target_os = "linux") {
        sums(&folder)?;
    }
    println!("{}", folder.display());
    for (name, _) in left {
        println!("left out, no standard library is installed: rustup target add {name}");
    }
    Ok(())
}

/// Builds the container image `heedful:VERSION` with docker or podman, whichever is installed.
pub(crate) fn image() -> Result<()> {
    step::command(&mut cargo(["build", "--release"]))?;
    let has = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    let program = ["docker", "podman"].into_iter().find(has).context("docker or podman is needed")?;
    let name = format!("heedful:{VERSION}");
    let mut build = Command::new(program);
    build.current_dir(root()).args(["build", "--file", "deploy/Dockerfile", "--tag", &name, "."]);
    step::command(&mut build)
}

/// Packs the guide into an archive.
pub(crate) fn site() -> Result<()> {
    site::check()?;
    archive(&target(), "site", &folder()?.join(format!("heedful-{VERSION}-site.tar.gz")))
}

/// Trains the demo's models and packs them.
pub(crate) fn models() -> Result<()> {
    step::command(&mut cargo(["build", "--release"]))?;
    let (work, folder) = (target().join("dist/models"), folder()?);
    for direction in ["zh-en", "en-zh"] {
        let model = work.join(direction);
        let mut demo = Command::new(release_program());
        step::command(demo.args(["demo", "--direction", direction, "--out"]).arg(&model))?;
        let mut pack = Command::new(release_program());
        pack.arg("pack").arg(&model).arg("--out").arg(folder.join(format!("demo-{direction}.zip")));
        step::command(pack.arg("--force"))?;
    }
    Ok(())
}

/// The folder of the release.
fn folder() -> Result<PathBuf> {
    let folder = target().join("dist").join(format!("heedful-{VERSION}"));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Builds the program for a target, and packs it with its documentation and licences.
fn program(name: &str, folder: &Path) -> Result<()> {
    if cfg!(target_os = "linux") {
        let tools = python::environment(Environment::Release)?;
        let with_glibc = format!("{name}.{GLIBC}");
        let build = ["zigbuild", "--locked", "--profile", "dist", "-p", PROGRAM, "--target", &with_glibc];
        step::command(cargo(build).env("PATH", wheel::path_with(&tools)?))?;
    } else {
        let build = ["build", "--locked", "--profile", "dist", "-p", PROGRAM, "--target", name];
        step::command(&mut cargo(build))?;
    }
    let file = format!("heedful{}", std::env::consts::EXE_SUFFIX);
    let program = target().join(name).join("dist").join(&file);
    if cfg!(target_os = "linux") {
        check_glibc(&program)?;
    }
    let title = format!("heedful-{VERSION}-{name}");
    let inside = folder.join(&title);
    fs::create_dir_all(&inside).with_context(|| format!("cannot make {}", inside.display()))?;
    copy(&program, &inside.join(file))?;
    for text in TEXTS {
        copy(&root().join(text), &inside.join(text))?;
    }
    site::manual(&inside)?;
    let packages = packages::of_program(PROGRAM, name)?;
    write(&inside.join("THIRD-PARTY-LICENSES.txt"), &licences::text(&packages)?)?;
    archive(folder, &title, &folder.join(format!("{title}.tar.gz")))?;
    fs::remove_dir_all(&inside).with_context(|| format!("cannot remove {}", inside.display()))
}

/// Packs the subfolder `name` of `folder` into `file`.
fn archive(folder: &Path, name: &str, file: &Path) -> Result<()> {
    let mut tar = Command::new("tar");
    if cfg!(target_os = "linux") {
        // Reproducible: the archive does not depend on owners, times and file order of this machine.
        tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
        tar.args(["--mode=u+w,go-w,a+rX", "--use-compress-program=gzip --no-name --best", "-cf"]);
    } else {
        tar.arg("-czf");
    }
    step::command(tar.arg(file).arg("-C").arg(folder).arg(name))
}

/// The third-party licences of one of our crates, for a target.
pub(crate) fn licences_of(package: &str, name: &str) -> Result<String> {
    licences::text(&packages::of_program(package, name)?)
}

/// Writes `SHA256SUMS` of all files in a folder, for `sha256sum --check`.
pub(crate) fn sums(folder: &Path) -> Result<()> {
    let mut names: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        names.push(entry?.file_name().into());
    }
    names.retain(|name| name != Path::new("SHA256SUMS"));
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
    fn every_linked_crate_has_its_licence_in_the_list() {
        let packages = packages::of_program(PROGRAM, TARGETS[0]).expect("the metadata of cargo");
        let named = |name: &str| packages.values().find(|package| package.name == name);
        assert!(named("tokenizers").is_some_and(|package| package.is_foreign));
        assert!(named("heedful").is_some_and(|package| !package.is_foreign));
        for absent in ["proptest", "heedful-bench", "windows-sys", "serde_derive"] {
            assert!(named(absent).is_none(), "{absent} is not part of the program");
        }
        let licences = licences::text(&packages).expect("every crate names its licence");
        for package in packages.values().filter(|package| package.is_foreign) {
            assert!(licences.contains(&format!("\n{} {}: ", package.name, package.version)));
        }
    }
}
