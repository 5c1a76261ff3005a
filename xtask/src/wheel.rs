//! `cargo xtask wheel`: the Python package as a wheel, and its tests.

use std::env::consts::{ARCH, DLL_PREFIX, DLL_SUFFIX, EXE_SUFFIX};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::dist::platform::GLIBC;
use crate::python::Environment;
use crate::workspace::{cargo, root, target};
use crate::{dist, python, step};

/// For each step of a test, on the slowest machine, with the compilation.
const MINUTES: u64 = 180;
/// The tests that need nothing but the package.
const FILES: [&str; 3] = ["test_package.py", "test_sharing.py", "test_documents.py"];

/// Builds the wheel for this machine, and says where it lies.
pub(crate) fn run() -> Result<()> {
    let wheel = build(&format!("{ARCH}-unknown-linux-gnu"), &target().join("wheels"))?;
    println!("{}", wheel.display());
    Ok(())
}

/// Builds the wheel of a target into a folder, which then has no other of it.
pub(crate) fn build(for_target: &str, folder: &Path) -> Result<PathBuf> {
    let tools = python::environment(Environment::Release)?;
    let architecture = for_target.split('-').next().unwrap_or(for_target);
    let of_target = |name: &str| name.ends_with(&format!("{architecture}.whl"));
    for old in wheels(folder)?.into_iter().filter(|name| of_target(name)) {
        fs::remove_file(folder.join(&old)).with_context(|| format!("cannot remove {old}"))?;
    }
    let licences = root().join("crates/python/LICENSE-THIRD-PARTY.txt");
    fs::write(&licences, dist::licences_of("heedful-python", for_target)?)
        .with_context(|| format!("cannot write {}", licences.display()))?;
    let mut maturin = Command::new(&tools);
    maturin.current_dir(root().join("crates/python")).env("PATH", path_with(&tools)?);
    maturin.args(["-m", "maturin", "build", "--locked", "--profile", "dist", "--out"]).arg(folder);
    if cfg!(target_os = "linux") {
        let compatibility = format!("manylinux_{}", GLIBC.replace('.', "_"));
        // It reads the symbols of what it has built, and refuses newer ones.
        maturin.args(["--zig", "--target", for_target, "--compatibility", &compatibility]);
    }
    step::command(&mut maturin)?;
    let built = wheels(folder)?.into_iter().find(|name| of_target(name));
    Ok(folder.join(built.with_context(|| format!("maturin left no wheel for {for_target}"))?))
}

fn wheels(folder: &Path) -> Result<Vec<String>> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names = names.collect::<Result<Vec<_>>>()?;
    Ok(names.into_iter().filter(|name| name.ends_with(".whl")).collect())
}

/// The search path with the programs of an environment before all others.
pub(crate) fn path_with(interpreter: &Path) -> Result<OsString> {
    let programs = interpreter.parent().context("an interpreter lies in a folder")?.to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&others)))?)
}

/// The tests of the package as it lies in the tree, with the library that the other tests were built with.
pub(crate) fn test() -> Result<()> {
    let folder = assemble()?;
    let interpreter = python::environment(Environment::Package)?;
    let program = target().join("debug").join(format!("heedful{EXE_SUFFIX}"));
    FILES.iter().try_for_each(|file| {
        step::within(MINUTES, tests(&interpreter, file, &program).env("PYTHONPATH", &folder))
    })
}

/// Puts the package of the debug build together; returns the folder to import it from.
pub(crate) fn assemble() -> Result<PathBuf> {
    let build = ["build", "--workspace", "--all-features", "--lib", "--bin", "heedful"];
    step::within(MINUTES, &mut cargo(build))?;
    let folder = target().join("python");
    let package = folder.join("heedful");
    fs::create_dir_all(&package).with_context(|| format!("cannot make {}", package.display()))?;
    let sources = root().join("crates/python/python/heedful");
    for name in ["__init__.py", "__init__.pyi", "_heedful.pyi", "py.typed"] {
        fs::copy(sources.join(name), package.join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    let library = target().join("debug").join(format!("{DLL_PREFIX}_heedful{DLL_SUFFIX}"));
    let module = if cfg!(windows) { "_heedful.pyd" } else { "_heedful.abi3.so" };
    fs::copy(&library, package.join(module)).with_context(|| format!("cannot copy {}", library.display()))?;
    Ok(folder)
}

/// The wheel in an environment that has nothing else, and with Ray and Spark: both need a network, and some gigabytes.
pub(crate) fn test_wheel() -> Result<()> {
    let wheel = build(&format!("{ARCH}-unknown-linux-gnu"), &target().join("wheels"))?;
    step::within(MINUTES, &mut cargo(["build", "--profile", "dist", "-p", "heedful-cli"]))?;
    let program = target().join("dist").join(format!("heedful{EXE_SUFFIX}"));
    let empty = python::empty_environment("wheel-venv")?;
    install(&empty, &wheel)?;
    FILES.iter().try_for_each(|file| step::within(MINUTES, &mut tests(&empty, file, &program)))?;
    let clusters = python::environment(Environment::Clusters)?;
    install(&clusters, &wheel)?;
    step::within(MINUTES, &mut tests(&clusters, "test_clusters.py", &program))
}

fn install(interpreter: &Path, wheel: &Path) -> Result<()> {
    ensure!(wheel.is_file(), "{} is missing", wheel.display());
    let pip = ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--force-reinstall"];
    step::within(MINUTES, Command::new(interpreter).args(pip).arg(wheel))
}

/// A file of tests, which compare the package with a program.
fn tests(interpreter: &Path, file: &str, program: &Path) -> Command {
    let mut command = Command::new(interpreter);
    command.current_dir(root().join("crates/python/tests")).arg(file);
    command.env("HEEDFUL_PROGRAM", program).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}
