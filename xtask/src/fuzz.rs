//! `cargo xtask fuzz`: fuzzes every parser of external input.

use anyhow::Result;

use crate::step;
use crate::workspace::cargo;

pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    step::command(cargo(["run", "--release", "--package", "heedful-fuzz", "--"]).args(arguments))
}
