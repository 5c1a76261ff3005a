//! The project's own commands, run as `cargo xtask COMMAND`.

mod aarch64;
mod bench;
mod bench_kit;
mod bits;
mod browser;
mod caps;
mod check;
mod dist;
mod fuzz;
mod golden;
mod gpu_kit;
mod kit;
mod markdown;
mod matrix;
mod product;
mod public_items;
mod python;
mod site;
mod step;
mod story;
mod targets;
mod test;
mod tidy;
mod web;
mod wheel;
mod workflows;
mod workspace;
mod zoo;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use matrix::Extent;

const HELP: &str = "\
The project's own commands.

Usage: cargo xtask COMMAND

  check              formatting, clippy, tidy and documentation, with warnings as errors; caps (xtask/src/caps.rs)
  test               check, all tests, a short run of the release binary's demo, and the web page in a browser
  test --all         also tests that are slow or need a network: the wheel in an empty environment, and with Ray and Spark
  matrix             every command, route and Python class with every kind of model (pairwise over all keys); prints a table
  matrix --all       the same models, each command with each of its options
  page               only the last part of test: the demo, the commands in the documentation, and the web page in a
                     browser with the demo's model
  page-pictures MODEL
                     take the screenshots in docs/pictures, with the folder of a model trained by heedful demo
  tidy               project rules: file lengths, module order, location of unsafe code, stray paths, dead links, words
  wheel              build the Python package as a wheel for this CPU in target/wheels; needs Python and a network
  dist               programs and wheels for x86-64 and ARM (on Linux for glibc 2.17 or newer) with manual pages, completions,
                     checksums and licences, in target/dist/heedful-VERSION; needs Python and a network
  dist image         the container image heedful:VERSION, by docker or podman
  dist site          the guide as an archive
  dist models        train the demo's models and pack them
  dist sums FOLDER   write SHA256SUMS of the files in FOLDER
  bits [BEFORE]      checksums of the results of every family and task; BEFORE is the file of an earlier table to compare with
  bench NAME [ARGS]  measure heedful against its peers; without NAME, list the benches; ARGS are passed to the bench
  bench-kit FOLDER [VERSION]
                     package the bench translate with its peer for a machine without Rust and network; VERSION is the
                     Python version there (3.12), if it differs from python3 here
  gpu-kit [FOLDER]   package tests, benches and scripts (target/gpu-kit) for a machine with a GPU and without Rust
  fuzz [ARGS]        fuzz the parsers of files, texts and requests; --help lists ARGS
  aarch64 [ARGS]     the tensor crate's tests and the bits of the release binary on an emulated ARM CPU;
                     ARGS: test [ARGUMENTS OF CARGO TEST], or bits [BEFORE]
  targets            compile for Linux, Windows, macOS and WebAssembly: every target whose standard library is installed
  web                build heedful for a browser in target/web-page, with the demo's models, and test it in Node
  story [check]      run the commands of docs/story, and write their output and pictures into its chapters; check only
                     verifies that the commands in the documentation exist
  site               write docs/reference from the sources, and build the guide as a static site in target/site; installs
                     mdBook in target/ if missing
  zoo ENGLISH        download the models of heedful models, import them and compare them with the original implementations
                     on a file of sentences; needs a network
  golden             recompute the reference results in crates/heedful/tests with PyTorch and sacreBLEU

bench, zoo, golden and test --all create a Python environment under target/ on first use (several GB), test, wheel and
dist small ones. HEEDFUL_PYTHON names the interpreter to create them with (python3 by default). For bench,
HEEDFUL_BENCH_PYTHON names an interpreter that already has the peer's packages.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--help" | "-h" | "help"] => {
            println!("{HELP}");
            Ok(())
        }
        ["zoo", english] => zoo::run(english),
        ["zoo", ..] => bail!("usage: cargo xtask zoo ENGLISH"),
        ["check"] => check::run(),
        ["test"] => test::run(),
        ["test", "--all"] => test::run_all(),
        ["test", ..] => bail!("usage: cargo xtask test [--all]"),
        ["matrix"] => matrix::run(Extent::Pairs),
        ["matrix", "--all"] => matrix::run(Extent::Everything),
        ["matrix", ..] => bail!("usage: cargo xtask matrix [--all]"),
        ["wheel"] => wheel::run(),
        ["dist"] => dist::run(),
        ["dist", "image"] => dist::image(),
        ["dist", "site"] => dist::site(),
        ["dist", "models"] => dist::models(),
        ["dist", "sums", folder] => dist::sums(Path::new(folder)),
        ["dist", ..] => bail!("usage: cargo xtask dist [image|site|models|sums FOLDER]"),
        ["page"] => test::demo_and_page(),
        ["page-pictures", model] => browser::pictures(model),
        ["page-pictures", ..] => {
            bail!("page-pictures takes the folder of a model trained by `heedful demo`")
        }
        ["site"] => site::run(),
        ["tidy"] => tidy::run(),
        ["bits"] => bits::run(None),
        ["bits", before] => bits::run(Some(before)),
        ["bench", name, rest @ ..] => bench::run(name, rest),
        ["bench"] => bail!("which bench? One of: {}", bench::names()?.join(", ")),
        ["bench-kit", folder] => bench_kit::run(folder, None),
        ["bench-kit", folder, python] => bench_kit::run(folder, Some(python)),
        ["bench-kit", ..] => bail!("usage: cargo xtask bench-kit FOLDER [VERSION]"),
        ["gpu-kit"] => gpu_kit::run(None),
        ["gpu-kit", folder] => gpu_kit::run(Some(folder)),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["story"] => story::run(),
        ["story", "check"] => story::check_only(),
        ["story", ..] => bail!("usage: cargo xtask story [check]"),
        ["golden"] => golden::run(),
        ["aarch64", rest @ ..] => aarch64::run(rest),
        ["targets"] => targets::run(),
        ["web"] => web::run(),
        [] => bail!("no command given\n\n{HELP}"),
        [known @ ("check" | "page" | "site" | "tidy" | "wheel" | "golden" | "targets" | "web"), ..] => {
            bail!("{known} takes no arguments")
        }
        [other, ..] => bail!("there is no command `{other}`\n\n{HELP}"),
    }
}
