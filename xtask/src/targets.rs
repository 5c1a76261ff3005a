//! `cargo xtask targets`: checks that everything compiles without warnings for all supported systems.
//!
//! This needs only the target's standard library, no linker and no machine of that kind. Targets without it
//! are listed and skipped.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::cargo;
use crate::{step, web};

const TARGETS: [&str; 7] = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-pc-windows-msvc",
    "x86_64-pc-windows-gnu",
    "aarch64-pc-windows-msvc",
    "aarch64-apple-darwin",
    "x86_64-apple-darwin",
];

pub(crate) fn run() -> Result<()> {
    let mut checked = Vec::new();
    let mut skipped = Vec::new();
    for target in TARGETS.into_iter().chain([web::TARGET]) {
        if !is_installed(target)? {
            skipped.push(target);
            continue;
        }
        // With clippy, because it turns warnings into errors only in this workspace's crates. Its lints run
        // in `cargo xtask check`, because some, such as sizes of types, differ between systems.
        let mut check = cargo(["clippy", "--target", target]);
        match target {
            // A browser has no sockets, processes and test programs.
            web::TARGET => check.args(["-p", "heedful-web"]),
            _ => check.args(["--workspace", "--all-features", "--all-targets"]),
        };
        step::command(check.args(["--", "-D", "warnings", "-A", "clippy::all"]))?;
        checked.push(target);
    }
    ensure!(!checked.is_empty(), "no target has a standard library here: rustup target add TARGET");
    println!("checked: {}", checked.join(", "));
    if !skipped.is_empty() {
        let names = skipped.join(" ");
        println!("skipped, no standard library is installed: {names}\n  rustup target add {names}");
    }
    Ok(())
}

/// Whether the compiler in use has the target's standard library.
pub(crate) fn is_installed(target: &str) -> Result<bool> {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(compiler);
    let output = command.args(["--print", "target-libdir", "--target", target]).output();
    let output = output.context("could not start rustc")?;
    let folder = String::from_utf8(output.stdout).context("rustc names a folder that is not UTF-8")?;
    Ok(output.status.success() && PathBuf::from(folder.trim_end()).is_dir())
}
