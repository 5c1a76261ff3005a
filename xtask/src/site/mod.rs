//! `cargo xtask site`: builds the guide as a static site in target/site, with mdBook, from docs/ and from
//! generated reference pages, and checks every link of the result.

mod api;
mod links;
mod pages;
mod python;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use self::pages::Book;
use crate::step;
use crate::workspace::{cargo, files, root, target};

/// The version of mdBook to install if the machine has no version of this series.
const VERSION: &str = "0.5.4";
const SERIES: &str = "0.5.";

const MINUTES: u64 = 60;

/// The model of the server that describes the routes: small, and in the repository.
const MODEL: &str = "crates/heedful/tests/exchange/models/marian-swish";

/// Pages of docs/reference that are generated.
const REFERENCE: [&str; 4] = ["commands.md", "recipe.md", "api.md", "python.md"];

/// Regenerates docs/reference and builds the site.
pub(crate) fn run() -> Result<()> {
    let work = empty("site-source")?;
    let folder = root().join("docs/reference");
    fs::create_dir_all(&folder)?;
    for (name, text) in reference(&work)? {
        fs::write(folder.join(name), text)?;
    }
    build(&work)
}

/// Builds the site; an error if docs/reference is out of date.
pub(crate) fn check() -> Result<()> {
    let work = empty("site-source")?;
    for (name, text) in reference(&work)? {
        let committed = fs::read_to_string(root().join("docs/reference").join(name)).unwrap_or_default();
        ensure!(committed == text, "docs/reference/{name} is out of date: cargo xtask site writes it");
    }
    build(&work)
}

fn build(work: &Path) -> Result<()> {
    let program = mdbook()?;
    let site = empty("site")?;
    let files = files()?;
    for (book, output) in [(Book::English, site.clone()), (Book::Chinese, site.join("zh"))] {
        let source = work.join(book.language());
        book.write(&files, &source)?;
        let mut build = Command::new(&program);
        build.arg("build").arg(&source).arg("--dest-dir").arg(&output);
        step::within(MINUTES, &mut build)?;
    }
    let checked = links::check(&site)?;
    eprintln!("  {checked} links lead somewhere; the guide is {}", site.join("index.html").display());
    Ok(())
}

/// An empty folder below target/.
fn empty(name: &str) -> Result<PathBuf> {
    let folder = target().join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Writes manual pages (`man`) and shell completions (`completions`) to a folder.
pub(crate) fn manual(folder: &Path) -> Result<()> {
    let work = empty("manual")?;
    build_programs()?;
    step::within(MINUTES, Command::new(debug_program("examples/reference")).arg(&work))?;
    let (pages, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&pages)?;
    for entry in fs::read_dir(work.join("man"))? {
        let entry = entry?;
        fs::copy(entry.path(), pages.join(entry.file_name()))?;
    }
    fs::create_dir_all(&completions)?;
    for (shell, name) in SHELLS {
        let output = Command::new(debug_program("heedful")).args(["completions", shell]).output()?;
        ensure!(output.status.success(), "heedful completions {shell} failed");
        fs::write(completions.join(name), output.stdout)?;
    }
    Ok(())
}

/// Shells, and the file names that they expect for a program's completions.
const SHELLS: [(&str, &str); 4] =
    [("bash", "heedful"), ("zsh", "_heedful"), ("fish", "heedful.fish"), ("powershell", "heedful.ps1")];

fn debug_program(name: &str) -> PathBuf {
    target().join("debug").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// Builds the program and the example that writes its reference pages.
fn build_programs() -> Result<()> {
    // The same packages and features as for the tests, so that nothing is compiled twice.
    let build = ["build", "--workspace", "--all-features", "--bin", "heedful", "--example", "reference"];
    step::within(MINUTES, &mut cargo(build))
}

/// The generated pages with their names.
fn reference(work: &Path) -> Result<Vec<(&'static str, String)>> {
    let model = work.join("model");
    build_programs()?;
    let mut import = Command::new(debug_program("heedful"));
    import.arg("import").arg(root().join(MODEL)).arg("-o").arg(&model).arg("--quiet");
    step::within(MINUTES, &mut import)?;
    step::within(MINUTES, Command::new(debug_program("examples/reference")).arg(work).arg(&model))?;
    let pages = REFERENCE.map(|name| {
        let text = match name {
            "api.md" => api::page(&fs::read_to_string(work.join("openapi.json"))?)?,
            "python.md" => {
                let stub = root().join("crates/python/python/heedful/__init__.pyi");
                python::page(&fs::read_to_string(stub)?)
            }
            name => fs::read_to_string(work.join(name))?,
        };
        Ok((name, text))
    });
    pages.into_iter().collect()
}

/// The path of mdBook: the installed one, or one that is installed below target/.
fn mdbook() -> Result<PathBuf> {
    let tools = target().join("tools");
    let installed = tools.join("bin").join(format!("mdbook{}", std::env::consts::EXE_SUFFIX));
    for program in [PathBuf::from("mdbook"), installed.clone()] {
        let output = Command::new(&program).arg("--version").output();
        let version =
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        if version.trim().trim_start_matches("mdbook v").starts_with(SERIES) {
            return Ok(program);
        }
    }
    let arguments =
        ["install", "mdbook", "--version", VERSION, "--locked", "--debug", "--no-default-features"];
    let mut install = cargo(arguments);
    install.args(["--features", "search", "--root"]).arg(&tools).env("CARGO_PROFILE_DEV_DEBUG", "false");
    step::within(MINUTES, &mut install)?;
    ensure!(installed.is_file(), "cargo install left no {}", installed.display());
    Ok(installed)
}

/// The first heading of a text in Markdown.
fn title(text: &str) -> Result<&str> {
    match text.lines().find_map(|line| line.strip_prefix("# ")) {
        Some(title) => Ok(title),
        None => bail!("a page has no heading"),
    }
}
