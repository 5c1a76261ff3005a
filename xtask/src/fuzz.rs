//! `cargo xtask fuzz`: broken input for everything that reads input.

use anyhow::Result;

use crate::step;
use crate::workspace::cargo;

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    step::command(cargo(["run", "--release", "--package", "heedful-fuzz", "--"]).args(arguments))
}
