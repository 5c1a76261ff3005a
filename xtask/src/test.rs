//! `cargo xtask test`: the one command that says whether the tree is good.

use anyhow::Result;

use crate::workspace::cargo;
use crate::{check, step};

pub(crate) fn run() -> Result<()> {
    check::run()?;
    step::command(&mut cargo(["test", "--workspace", "--all-targets"]))?;
    // `--all-targets` leaves the documentation's examples out.
    step::command(&mut cargo(["test", "--workspace", "--doc"]))?;
    // People run the release binary, and nothing above has.
    step::command(&mut cargo(["run", "--release", "--", "demo", "--quick"]))
}
