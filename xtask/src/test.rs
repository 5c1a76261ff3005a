//! `cargo xtask test`: the one command that says whether the tree is good.

use anyhow::Result;

use crate::workspace::{cargo, root, target};
use crate::{browser, check, python, step};

pub(crate) fn run() -> Result<()> {
    check::run()?;
    step::command(&mut cargo(["test", "--workspace", "--all-targets"]))?;
    // `--all-targets` leaves the documentation's examples out.
    step::command(&mut cargo(["test", "--workspace", "--doc"]))?;
    // Ignored elsewhere, because it needs Python: a client of LibreTranslate, unchanged, against our server. For one package alone
    // cargo would build the dependencies once more, with fewer features.
    let client = ["test", "--workspace", "--test", "server", "--", "--ignored"];
    step::command(cargo(client).env("HEEDFUL_TEST_PYTHON", python::test_environment()?))?;
    demo_and_page()
}

pub(crate) fn demo_and_page() -> Result<()> {
    // People run the release binary, and nothing above has.
    step::command(&mut cargo(["run", "--release", "--", "demo", "--quick"]))?;
    // The demo has left a model behind.
    let program = target().join("release").join(format!("heedful{}", std::env::consts::EXE_SUFFIX));
    browser::run(&program, &root().join("heedful-demo"))
}
