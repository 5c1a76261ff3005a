//! `cargo xtask bench NAME`: builds one benchmark of heedful against its peers and runs it.

use anyhow::{Context, Result, bail};

use crate::python::Environment;
use crate::workspace::{cargo, root};
use crate::{python, step};

/// Not a benchmark: writes the tables of bench/README.md.
const PAGE: &str = "page";

pub(crate) fn run(name: &str, arguments: &[&str]) -> Result<()> {
    let known = names()?;
    if !known.iter().any(|known| known == name) {
        bail!("there is no bench `{name}`; there are: {}", known.join(", "));
    }
    if name == PAGE {
        return step::command(&mut cargo(["run", "--quiet", "--package", "heedful-bench", "--bin", PAGE]));
    }
    let python = match std::env::var_os("HEEDFUL_BENCH_PYTHON") {
        Some(python) => python.into(),
        None => python::environment(Environment::Peers)?,
    };
    let build = ["build", "--profile", "bench", "--package", "heedful-bench", "--bin", name];
    step::command(&mut cargo(build))?;
    let run = ["run", "--quiet", "--profile", "bench", "--package", "heedful-bench", "--bin", name, "--"];
    step::command(cargo(run).args(arguments).env("HEEDFUL_BENCH_PYTHON", python))
}

/// The names of all benches; each is one file or folder.
pub(crate) fn names() -> Result<Vec<String>> {
    let folder = root().join("bench/src/bin");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}
