//! `cargo xtask fmt`: rustfmt over every file, also those that `cargo fmt` does not find.
//!
//! `cargo fmt` follows `mod` lines, but not those that a macro writes: the folders of tasks are listed in
//! `crates/heedful/src/registry.rs` alone. So rustfmt is given every file that git knows.

use std::process::Command;

use anyhow::Result;

use crate::step;
use crate::workspace::{files, root};

/// What to do with a file that is not formatted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Format it.
    Write,
    /// Fail.
    Check,
}

pub(crate) fn run(mode: Mode) -> Result<()> {
    let sources = files()?.into_iter().filter(|path| path.ends_with(".rs"));
    let mut command = Command::new("rustfmt");
    command.current_dir(root()).args((mode == Mode::Check).then_some("--check")).args(sources);
    let name = if mode == Mode::Check { "rustfmt --check (cargo xtask fmt mends it)" } else { "rustfmt" };
    step::quietly(name, &mut command)
}
