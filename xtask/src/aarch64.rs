//! `cargo xtask aarch64`: runs the tensor crate's tests and the release binary on an emulated ARM CPU.
//!
//! [`Tools::find`] lists the required tools. On an ARM machine, use `cargo xtask test` instead.

use std::env::consts::ARCH;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::bits::{self, Program};
use crate::workspace::{cargo, target};
use crate::{step, targets};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";

/// Without arguments, runs all tests of the tensor crate and `bits` of the release binary; with `test`,
/// `cargo test` with the given arguments; with `bits`, only `bits`, optionally compared with an earlier
/// table.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let tools = Tools::find()?;
    match arguments {
        [] => {
            tools.test(&["-p", "heedful-tensor"])?;
            tools.bits(None)
        }
        ["test", rest @ ..] => tools.test(rest),
        ["bits"] => tools.bits(None),
        ["bits", before] => tools.bits(Some(before)),
        _ => bail!("usage: cargo xtask aarch64 [test [CARGO TEST ARGUMENTS] | bits [BEFORE]]"),
    }
}

/// A cross compiler and an emulator.
struct Tools {
    /// Folder of the C library for ARM.
    libraries: PathBuf,
}

impl Tools {
    fn find() -> Result<Tools> {
        ensure!(ARCH != "aarch64", "this machine needs no emulator: run cargo xtask test");
        ensure!(
            targets::is_installed(TARGET)?,
            "the compiler has no standard library for {TARGET}: run `rustup target add {TARGET}`, or with Debian's \
             rustc-web install libstd-rust-web-dev:arm64"
        );
        let answers = |program: &str| Command::new(program).arg("--version").output().is_ok();
        ensure!(answers(LINKER), "{LINKER} links for ARM: install it (Debian's gcc-aarch64-linux-gnu)");
        ensure!(answers(EMULATOR), "{EMULATOR} runs programs for ARM: install it (Debian's qemu-user)");
        // The compiler prints the path of the loader, which is in `lib` of the folder that the emulator
        // needs.
        let loader = Command::new(LINKER).arg("-print-file-name=ld-linux-aarch64.so.1").output()?;
        let loader = PathBuf::from(String::from_utf8_lossy(&loader.stdout).trim_end());
        match loader.parent().and_then(Path::parent) {
            Some(libraries) if loader.is_file() => Ok(Tools { libraries: libraries.to_owned() }),
            _ => bail!("{LINKER} has no C library: install it (Debian's libc6-dev-arm64-cross)"),
        }
    }

    /// The emulator's command line, to be followed by a program and its arguments.
    fn runner(&self) -> [OsString; 3] {
        [EMULATOR.into(), "-L".into(), self.libraries.clone().into()]
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo(arguments.iter().copied());
        let name = TARGET.to_uppercase().replace('-', "_");
        command.env(format!("CARGO_TARGET_{name}_LINKER"), LINKER);
        command.env(format!("CARGO_TARGET_{name}_RUNNER"), self.runner().join(" ".as_ref()));
        command
    }

    fn test(&self, arguments: &[&str]) -> Result<()> {
        let command = ["test", "--target", TARGET].iter().chain(arguments).copied().collect::<Vec<_>>();
        step::command(&mut self.cargo(&command))
    }

    fn bits(&self, before: Option<&str>) -> Result<()> {
        step::command(&mut self.cargo(&["build", "--release", "--target", TARGET]))?;
        let heedful = target().join(TARGET).join("release/heedful");
        let words = self.runner().into_iter().chain([heedful.into()]).collect();
        bits::table(&Program { words }, before)
    }
}
