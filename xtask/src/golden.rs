//! `cargo xtask golden`: recomputes the reference results of the golden tests.

use std::process::Command;

use anyhow::Result;

use crate::python::Environment;
use crate::workspace::root;
use crate::{python, step};

pub(crate) fn run() -> Result<()> {
    let python = python::environment(Environment::Peers)?;
    for script in [
        "golden/generate.py",
        "golden/recurrent.py",
        "golden/seq2seq.py",
        "golden/convolution.py",
        "golden/calculator.py",
        "golden/tasks/generate.py",
        "metrics/generate.py",
    ] {
        let script = format!("crates/heedful/tests/{script}");
        step::command(Command::new(&python).arg(root().join(script)).current_dir(root()))?;
    }
    Ok(())
}
