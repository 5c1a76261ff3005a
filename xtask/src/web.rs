//! `cargo xtask web`: heedful for a browser, as a folder that any static host serves, and its tests in Node.
//!
//! ```text
//! target/web-page/heedful.wasm.gz           the crate heedful-web, which worker.js decompresses
//! target/web-page/engine.js, worker.js      its scripts (crates/web/page)
//! target/web-page/zh-en.zip, en-zh.zip      the demo's models in int8
//! ```

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::{cargo, release_program, root, target};
use crate::{caps, step, targets};

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
const DIRECTIONS: [&str; 2] = ["zh-en", "en-zh"];
/// Time limit of each step.
const MINUTES: u64 = 180;

/// The demo's models.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Training {
    Full,
    /// Short phrases and smaller models, for tests.
    Quick,
}

/// Builds the folder and tests it. Models of an earlier run are used again.
pub(crate) fn run() -> Result<()> {
    ensure!(
        targets::is_installed(TARGET)?,
        "the compiler has no standard library for WebAssembly: rustup target add {TARGET}"
    );
    let folder = target().join("web-page");
    build(&folder, Training::Full)?;
    let sizes = sizes(&folder)?;
    let total: u64 = sizes.iter().map(|(_, bytes)| bytes).sum();
    for (name, bytes) in &sizes {
        println!("{bytes:>10}  {name}");
    }
    println!("{total:>10}  in {}", folder.display());
    ensure!(
        total <= caps::WEB_BYTES,
        "the download has grown beyond its cap of {} bytes: make it smaller, or raise the cap in xtask/src/caps.rs and say why",
        caps::WEB_BYTES
    );
    check(&folder, &["-p", "heedful-web"])
}

/// The tests with small models, if the standard library is installed or can be.
pub(crate) fn test() -> Result<()> {
    if !targets::is_installed(TARGET)? {
        let _ = Command::new("rustup").args(["target", "add", TARGET]).status();
    }
    if !targets::is_installed(TARGET)? {
        eprintln!("skipped: the module for browsers, which needs `rustup target add {TARGET}`");
        return Ok(());
    }
    let folder = target().join("web-test");
    build(&folder, Training::Quick)?;
    // The features of the other tests, so that cargo does not build the dependencies again.
    check(&folder, &["--workspace", "--all-features"])
}

fn build(folder: &Path, training: Training) -> Result<()> {
    let module = ["build", "--profile", "web", "--target", TARGET, "-p", "heedful-web"];
    step::within(MINUTES, &mut cargo(module))?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let built = target().join(TARGET).join("web/heedful_web.wasm");
    let module = target().join("heedful.wasm");
    copy(&built, &module)?;
    optimise(&module)?;
    step::within(MINUTES, Command::new("gzip").args(["--best", "--no-name", "--force"]).arg(&module))?;
    copy(&target().join("heedful.wasm.gz"), &folder.join("heedful.wasm.gz"))?;
    for entry in fs::read_dir(root().join("crates/web/page")).context("there is no crates/web/page")? {
        let script = entry?.path();
        copy(&script, &folder.join(script.file_name().context("a listed file has a name")?))?;
    }
    DIRECTIONS.into_iter().try_for_each(|direction| model(folder, direction, training))
}

/// Shortens the module, if binaryen is installed.
fn optimise(module: &Path) -> Result<()> {
    if Command::new("wasm-opt").arg("--version").output().is_err() {
        return Ok(());
    }
    let mut shorten = Command::new("wasm-opt");
    shorten.args(["-O3", "--all-features"]).arg(module).arg("-o").arg(module);
    step::within(MINUTES, &mut shorten)
}

/// Trains, quantizes and packs the demo's model of a direction, unless the folder has it.
fn model(folder: &Path, direction: &str, training: Training) -> Result<()> {
    let package = folder.join(format!("{direction}.zip"));
    if package.is_file() {
        return Ok(());
    }
    step::within(MINUTES, &mut cargo(["build", "--release"]))?;
    let work = target().join("web-models");
    let (trained, small) = (work.join(direction), work.join(format!("{direction}-int8")));
    let mut arguments = vec![OsStr::new("demo"), "--direction".as_ref(), direction.as_ref()];
    if training == Training::Quick {
        arguments.push("--quick".as_ref());
    }
    heedful(arguments, ["--out".as_ref(), trained.as_ref()])?;
    heedful(
        vec!["quantize".as_ref(), trained.as_ref(), "--to".as_ref(), "int8".as_ref(), "--force".as_ref()],
        ["--output".as_ref(), small.as_ref()],
    )?;
    heedful(
        vec!["pack".as_ref(), small.as_ref(), "--force".as_ref()],
        ["--output".as_ref(), package.as_ref()],
    )
}

fn heedful(arguments: Vec<&OsStr>, output: [&OsStr; 2]) -> Result<()> {
    step::within(MINUTES, Command::new(release_program()).args(arguments).args(output))
}

/// Runs the tests of the crate in Node.
fn check(folder: &Path, packages: &[&str]) -> Result<()> {
    let mut test = cargo(["test"]);
    test.args(packages).args(["--test", "module", "--", "--ignored", "--nocapture"]);
    step::within(MINUTES, test.env("HEEDFUL_WEB", folder))
}

/// Names and bytes of the files of the folder.
fn sizes(folder: &Path) -> Result<Vec<(String, u64)>> {
    let listing = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let paths = listing.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    let size = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, fs::metadata(path)?.len()))
    };
    let mut sizes: Vec<(String, u64)> = paths.iter().map(size).collect::<Result<_>>()?;
    sizes.sort();
    Ok(sizes)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display())).map(drop)
}
