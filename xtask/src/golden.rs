//! `cargo xtask golden`: computes the reference results of the golden tests again.

use std::process::Command;

use anyhow::Result;

use crate::workspace::root;
use crate::{python, step};

pub(crate) fn run() -> Result<()> {
    let python = python::environment()?;
    let scripts =
        ["golden/generate.py", "golden/recurrent.py", "golden/convolution.py", "metrics/generate.py"];
    for script in scripts.map(|script| format!("crates/heedful/tests/{script}")) {
        step::command(Command::new(&python).arg(root().join(script)).current_dir(root()))?;
    }
    Ok(())
}
