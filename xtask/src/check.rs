//! `cargo xtask check`: all static checks of the code.

use anyhow::{Context, Result, bail};

use crate::workspace::cargo;
use crate::{public_items, step, tidy};

pub(crate) fn run() -> Result<()> {
    // The fastest check first, to fail before a compilation.
    step::command(&mut cargo(["fmt", "--all", "--check"]))?;
    tidy::run()?;
    step::command(&mut cargo([
        "clippy",
        "--workspace",
        "--all-features",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    step::command(
        cargo(["doc", "--workspace", "--all-features", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    public_items::check()?;
    lean()
}

/// Checks the library without the features for GPUs and MPI: it compiles, including tests, and does not
/// depend on their crates.
fn lean() -> Result<()> {
    let lean = ["--package", "heedful", "--no-default-features"];
    step::timed("dependencies of the library without features", || {
        let edges = ["--edges", "normal", "--prefix", "none", "--format", "{p}"];
        let output = cargo(["tree"]).args(lean).args(edges).output().context("could not start cargo tree")?;
        if !output.status.success() {
            bail!("cargo tree failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let packages =
            String::from_utf8(output.stdout).context("cargo tree names a package that is not UTF-8")?;
        let found = ["cudarc", "libloading"]
            .into_iter()
            .find(|&refused| packages.lines().any(|line| line.split(' ').next() == Some(refused)));
        found.map_or(Ok(()), |found| bail!("{found} is a dependency although its feature is disabled"))
    })?;
    let tests = ["--package", "heedful-tensor", "--all-targets", "--", "-D", "warnings"];
    step::command(cargo(["clippy"]).args(lean).args(tests))
}
