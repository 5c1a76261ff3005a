//! `cargo xtask golden`: computes the reference results of the golden tests again.

use std::process::Command;

use anyhow::Result;

use crate::workspace::root;
use crate::{python, step};

pub(crate) fn run() -> Result<()> {
    let python = python::environment()?;
    for script in [
        "crates/heedful/tests/golden/generate.py",
        "crates/heedful/tests/golden/tasks/generate.py",
        "crates/heedful/tests/metrics/generate.py",
    ] {
        step::command(Command::new(&python).arg(root().join(script)).current_dir(root()))?;
    }
    Ok(())
}
