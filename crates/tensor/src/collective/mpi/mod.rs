//! MPI, found at run time: nothing of it is needed to build.
//!
//! 1. `library` finds the one that belongs to the launcher.
//! 2. `abi` has what differs between the three kinds: Open MPI's, MPICH's, and that of the MPI 5 standard.
//! 3. `calls` are the functions that are used, about ten.
//! 4. `transport` moves bytes with them.

#[cfg(unix)]
mod abi;
#[cfg(unix)]
mod calls;
#[cfg(unix)]
mod library;
#[cfg(unix)]
mod transport;

use super::group::{Failure, Group};

/// Why ranks cannot be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// There is no library.
    #[error(
        "no MPI library was found (looked for {looked_for}): start heedful with mpirun, mpiexec or srun of an MPI that is installed, \
         or name its library, HEEDFUL_MPI=/path/to/libmpi.so.40"
    )]
    NotFound {
        /// The names.
        looked_for: String,
    },
    /// The library that was named cannot be used.
    #[error("{path} is no MPI library that can be used ({why}): name another one with HEEDFUL_MPI")]
    Unusable {
        /// The library.
        path: String,
        /// The reason.
        why: String,
    },
    /// The launcher has started several processes, and the library knows of one only.
    #[error(
        "{variable} says that {launched} processes were started, but each of them is alone for {library}: the launcher and the \
         library belong to different MPIs. Name the library of the launcher, HEEDFUL_MPI=/path/to/libmpi.so, or use the launcher of \
         the library"
    )]
    Alone {
        /// What the launcher has set.
        variable: &'static str,
        /// Its number of processes.
        launched: usize,
        /// The library, by its own words.
        library: String,
    },
    /// The library does not start.
    #[error("MPI does not start: {0}")]
    Failed(#[from] Failure),
}

/// Joins the processes that a launcher has started with this one. It may be called once in a process.
pub fn join() -> Result<Group, Unavailable> {
    #[cfg(unix)]
    return Group::open(transport::Mpi::join);
    #[cfg(not(unix))]
    Err(Unavailable::NotFound { looked_for: "nothing, for it is used on Unix systems only".to_owned() })
}

/// The library that would be used, in its own words. Nothing is started.
pub fn library() -> Result<String, Unavailable> {
    #[cfg(unix)]
    return library::find().and_then(calls::Calls::load).map(|calls| calls.version());
    #[cfg(not(unix))]
    join().map(|_| String::new())
}

/// Open MPI's launcher sets it.
const OPEN_MPI: &str = "OMPI_COMM_WORLD_SIZE";

/// The number of processes that a launcher has started, and the variable that says so; `None` where there was no launcher.
pub fn launched() -> Option<(&'static str, usize)> {
    // Slurm sets SLURM_NTASKS for a batch script too, which is one process; a task of several has its number.
    let variables = [OPEN_MPI, "PMI_SIZE", "MV2_COMM_WORLD_SIZE"];
    let of = |name: &'static str| Some((name, std::env::var(name).ok()?.parse().ok()?));
    let step = || std::env::var_os("SLURM_STEP_NUM_TASKS").and_then(|_| of("SLURM_STEP_NUM_TASKS"));
    variables.into_iter().find_map(of).or_else(step)
}

#[cfg(unix)]
fn check_launcher(size: usize, library: &str) -> Result<(), Unavailable> {
    match launched() {
        Some((variable, launched)) if launched > 1 && size == 1 => {
            Err(Unavailable::Alone { variable, launched, library: library.to_owned() })
        }
        _ => Ok(()),
    }
}
