//! `cargo xtask matrix`: runs every command, route and class with every kind of model
//! (`crates/cli/tests/matrix`).

use anyhow::Result;

use crate::python::{self, Environment};
use crate::workspace::{cargo, release_program, target};
use crate::{step, wheel};

/// Which models are combined with which options of the commands.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    /// Every pair of values of two keys, and each option with some of the models.
    Pairs,
    /// The same models with every option.
    Everything,
}

/// Builds the program and prints the table.
pub(crate) fn run(extent: Extent) -> Result<()> {
    step::command(&mut cargo(["build", "--release"]))?;
    wheel::assemble()?;
    of_built(extent)
}

/// Prints the table of the release program and the Python package, which must be built already.
pub(crate) fn of_built(extent: Extent) -> Result<()> {
    let name = match extent {
        Extent::Pairs => "pairs",
        Extent::Everything => "everything",
    };
    let tests = [
        "test",
        "--workspace",
        "--all-features",
        "--test",
        "matrix",
        "--",
        "--ignored",
        "--exact",
        "--nocapture",
        name,
    ];
    let mut tests = cargo(tests);
    tests.env("HEEDFUL_MATRIX_OF", release_program()).env("PYTHONPATH", target().join("python"));
    step::command(tests.env("HEEDFUL_MATRIX_PYTHON", python::environment(Environment::Package)?))
}
