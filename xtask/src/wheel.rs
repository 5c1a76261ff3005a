//! `cargo xtask wheel`: builds the Python package as a wheel, and runs its tests.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX, EXE_SUFFIX};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::dist::platform::{GLIBC, host};
use crate::python::Environment;
use crate::workspace::{cargo, root, target};
use crate::{dist, python, step};

/// Time limit of each step of a test including compilation, for the slowest machine.
const MINUTES: u64 = 180;
/// The tests that need only the package.
const FILES: [&str; 3] = ["test_package.py", "test_sharing.py", "test_documents.py"];

/// Builds the wheel for this machine, and prints its path.
pub(crate) fn run() -> Result<()> {
    let wheel = build(&host(), &target().join("wheels"))?;
    println!("{}", wheel.display());
    Ok(())
}

/// Builds the wheel of a target, and moves it to a folder.
pub(crate) fn build(for_target: &str, folder: &Path) -> Result<PathBuf> {
    let tools = python::environment(Environment::Release)?;
    let licences = root().join("crates/python/LICENSE-THIRD-PARTY.txt");
    fs::write(&licences, dist::licences_of("heedful-python", for_target)?)
        .with_context(|| format!("cannot write {}", licences.display()))?;
    let new = target().join("new-wheel");
    if new.exists() {
        fs::remove_dir_all(&new).with_context(|| format!("cannot remove {}", new.display()))?;
    }
    let mut maturin = Command::new(&tools);
    maturin.current_dir(root().join("crates/python")).env("PATH", path_with(&tools)?);
    maturin.args(["-m", "maturin", "build", "--locked", "--profile", "dist", "--target", for_target]);
    maturin.arg("--out").arg(&new);
    if cfg!(target_os = "linux") {
        let compatibility = format!("manylinux_{}", GLIBC.replace('.', "_"));
        // maturin refuses symbols of a newer glibc.
        maturin.args(["--zig", "--compatibility", &compatibility]);
    }
    step::command(&mut maturin)?;
    let entry = fs::read_dir(&new).ok().and_then(|mut entries| entries.next());
    let built = entry.with_context(|| format!("maturin left no wheel for {for_target}"))??;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let wheel = folder.join(built.file_name());
    fs::rename(built.path(), &wheel).with_context(|| format!("cannot move {}", wheel.display()))?;
    Ok(wheel)
}

/// The `PATH` with the programs of an environment first.
pub(crate) fn path_with(interpreter: &Path) -> Result<OsString> {
    let programs = interpreter.parent().context("an interpreter lies in a folder")?.to_owned();
    let others = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(programs).chain(std::env::split_paths(&others)))?)
}

/// Runs the tests of the package's sources with the library of the debug build.
pub(crate) fn test() -> Result<()> {
    let folder = assemble()?;
    let interpreter = python::environment(Environment::Package)?;
    let program = target().join("debug").join(format!("heedful{EXE_SUFFIX}"));
    FILES.iter().try_for_each(|file| {
        step::within(MINUTES, tests(&interpreter, file, &program).env("PYTHONPATH", &folder))
    })
}

/// Assembles the package from the debug build; returns the folder to import it from.
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

/// Tests the wheel in an empty environment, and with Ray and Spark: this needs a network and some gigabytes.
pub(crate) fn test_wheel() -> Result<()> {
    let wheel = build(&host(), &target().join("wheels"))?;
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

/// The command of a test file that compares the package with a program.
fn tests(interpreter: &Path, file: &str, program: &Path) -> Command {
    let mut command = Command::new(interpreter);
    command.current_dir(root().join("crates/python/tests")).arg(file);
    command.env("HEEDFUL_PROGRAM", program).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}
