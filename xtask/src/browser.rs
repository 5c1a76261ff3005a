//! Tests the web page in a real browser: Node runs `crates/server/tests/browser` against `heedful serve` with
//! the demo's model.
//!
//! The tests are copied to `target/browser`, where npm installs the packages of their lock file, so that the
//! repository's folders stay clean.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};

use crate::step;
use crate::workspace::{cargo, release_program, root, target};

const TESTS: &str = "crates/server/tests/browser";
/// Time limit of each process, for the slowest machine.
const MINUTES: u64 = 30;
/// Program names of Chromium.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Runs the tests with a program and the folder of a model to serve.
pub(crate) fn run(program: &Path, model: &Path) -> Result<()> {
    step::within(MINUTES, node(program, model)?.args(["--test", "page.test.js"]))
}

/// Takes the screenshots in `docs/pictures`, with the folder of a model trained by `heedful demo`.
pub(crate) fn pictures(model: &str) -> Result<()> {
    step::command(&mut cargo(["build", "--release"]))?;
    let model = fs::canonicalize(model).with_context(|| format!("{model}: no folder of a model"))?;
    step::within(
        MINUTES,
        node(&release_program(), &model)?.arg("pictures.js").arg(root().join("docs/pictures")),
    )
}

/// Node in the folder of the tests, with the paths of program, model and browser in environment variables.
fn node(program: &Path, model: &Path) -> Result<Command> {
    let browser = tools()?;
    let mut node = Command::new("node");
    node.current_dir(packages(TESTS, "browser")?);
    node.env("HEEDFUL_BINARY", program).env("HEEDFUL_MODEL", model).env("CHROMIUM", browser);
    Ok(node)
}

/// Ensures that Node, npm and Chromium are installed, and returns the path of Chromium.
fn tools() -> Result<OsString> {
    let mut missing: Vec<&str> =
        ["nodejs", "npm"].into_iter().zip(["node", "npm"]).filter_map(absent).collect();
    if browser().is_none() {
        missing.push("chromium");
    }
    if !missing.is_empty() {
        eprintln!("The tests in the browser need {}: asking apt-get for it.", missing.join(" and "));
        let install = || -> Result<()> {
            step::within(MINUTES, Command::new("apt-get").arg("update"))?;
            step::within(
                MINUTES,
                Command::new("apt-get").args(["install", "--yes", "--no-install-recommends"]).args(&missing),
            )
        };
        install().with_context(|| {
            format!(
                "the page is tested in a real browser: install {} (CHROMIUM names a browser that is not on the PATH)",
                missing.join(", ")
            )
        })?;
    }
    match browser() {
        Some(browser) if missing.is_empty() || on_path("node").is_some() => Ok(browser),
        _ => bail!("apt-get succeeded, but node or a Chromium is not on the PATH"),
    }
}

fn absent((package, program): (&'static str, &str)) -> Option<&'static str> {
    on_path(program).is_none().then_some(package)
}

fn browser() -> Option<OsString> {
    match env::var_os("CHROMIUM") {
        Some(named) if !named.is_empty() => Some(named),
        _ => BROWSERS.iter().find_map(|name| on_path(name)).map(PathBuf::into_os_string),
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Copies a folder of scripts below target/, installs the packages of its lock file there, and
/// returns that folder.
pub(crate) fn packages(scripts: &str, name: &str) -> Result<PathBuf> {
    let (from, folder) = (root().join(scripts), target().join(name));
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for entry in fs::read_dir(&from).with_context(|| format!("cannot read {}", from.display()))? {
        let file = entry?.path();
        let name = file.file_name().context("a listed file has a name")?;
        fs::copy(&file, folder.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    // The stamp is a copy of the installed list, so that `diff` shows changes.
    let stamp = folder.join("installed-packages.json");
    let wanted =
        fs::read_to_string(folder.join("package-lock.json")).context("the scripts have no lock file")?;
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    step::within(MINUTES, Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder))
        .context("npm could not download the packages of the scripts; this needs a network once")?;
    // Written last: an interrupted installation is repeated next time.
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(folder)
}
