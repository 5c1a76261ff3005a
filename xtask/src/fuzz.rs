//! `cargo xtask fuzz`: broken input for everything that reads input.

use anyhow::Result;

use crate::step;
use crate::workspace::cargo;

/// Of all targets together, unless the arguments say otherwise.
const INPUTS: &str = "10000000";

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let run = ["run", "--release", "--package", "heedful-fuzz", "--", "--inputs", INPUTS];
    // The last of two counts.
    step::command(cargo(run).args(arguments))
}
