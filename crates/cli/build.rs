//! Passes the commit of a git checkout to the program, for `heedful --version`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // A package from a registry is not in a checkout, or in that of another project.
    let root = Path::new("../..");
    let log = root.join(".git/logs/HEAD");
    if !log.is_file() || !root.join("crates/cli/build.rs").is_file() {
        return;
    }
    println!("cargo:rerun-if-changed={}", log.display());
    let output = Command::new("git").args(["rev-parse", "--short=9", "HEAD"]).output();
    if let Some(output) = output.ok().filter(|output| output.status.success()) {
        println!("cargo:rustc-env=HEEDFUL_COMMIT={}", String::from_utf8_lossy(&output.stdout).trim());
    }
}
