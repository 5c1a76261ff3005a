//! `cargo xtask check`: all checks of the code that do not run it.

use anyhow::Result;

use crate::workspace::cargo;
use crate::{public_items, step, tidy};

pub(crate) fn run() -> Result<()> {
    // The quickest first: a misplaced space should not cost a compilation.
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
    public_items::check()
}
