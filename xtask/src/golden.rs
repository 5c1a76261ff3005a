//! `cargo xtask golden`: computes the reference results of the golden tests again.

use std::process::Command;

use anyhow::Result;

use crate::workspace::root;
use crate::{python, step};

pub(crate) fn run() -> Result<()> {
    let python = python::environment()?;
    let script = root().join("crates/heedful/tests/golden/generate.py");
    step::command(Command::new(python).arg(script).current_dir(root()))
}
