//! MPI, loaded at run time: nothing of it is needed to build.
//!
//! `loaded` has everything that needs the library; `absent` replaces it in a build without the feature `mpi`
//! and on systems other than Unix.

#[cfg_attr(not(all(unix, feature = "mpi")), path = "absent.rs")]
mod loaded;

use super::group::Failure;

pub use loaded::{join, library};

/// Why MPI cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MpiUnavailable {
    /// The program was built without MPI.
    #[error("this program was built without MPI: build it on a Unix system, with the feature `mpi`")]
    NotBuilt,
    /// No library was found.
    #[error(
        "no MPI library was found (looked for {looked_for}): start heedful with mpirun, mpiexec or srun of an installed MPI, \
         or set its library, HEEDFUL_MPI=/path/to/libmpi.so.40"
    )]
    NotFound {
        /// The names.
        looked_for: String,
    },
    /// The library that was named cannot be used.
    #[error("{path} is not a usable MPI library ({why}): set HEEDFUL_MPI to another one")]
    Unusable {
        /// The library.
        path: String,
        /// The reason.
        why: String,
    },
    /// The launcher has started several processes, but the library sees only one.
    #[error(
        "{variable} says that {launched} processes were started, but {library} sees only one each: the launcher and the \
         library belong to different MPIs. Set the launcher's library, HEEDFUL_MPI=/path/to/libmpi.so, or use the launcher of \
         the library"
    )]
    Alone {
        /// The environment variable that the launcher has set.
        variable: &'static str,
        /// Its number of processes.
        launched: usize,
        /// The library's version string.
        library: String,
    },
    /// MPI failed to start.
    #[error("MPI does not start: {0}")]
    Failed(#[from] Failure),
}

/// Set by Open MPI's launcher.
const OPEN_MPI: &str = "OMPI_COMM_WORLD_SIZE";
/// Set by prterun and other PMIx launchers.
const PMIX: &str = "PMIX_RANK";

/// The size of a launch, according to one environment variable of its launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The variable.
    pub variable: &'static str,
    /// Number of processes; `None` if the launcher reports only that this is one of several.
    pub processes: Option<usize>,
}

/// The launch that this process belongs to; `None` without a launcher.
pub fn launched() -> Option<Launched> {
    launched_by(|name| std::env::var(name).ok())
}

fn launched_by(value: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    // Slurm sets SLURM_NTASKS for a batch script too, which is one process; a job step of several has its own
    // variable.
    let counts = [OPEN_MPI, "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"];
    let count = |variable: &'static str| {
        Some(Launched { variable, processes: Some(value(variable)?.trim().parse().ok()?) })
    };
    // PMIx launchers such as prterun set each process's rank, but not the number of processes.
    let number = || value(PMIX).map(|_| Launched { variable: PMIX, processes: None });
    counts.into_iter().find_map(count).or_else(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_launcher_is_recognised() {
        let by = |set: &[(&str, &str)]| {
            launched_by(|name| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let job = |variable, processes| Some(Launched { variable, processes });
        assert_eq!(by(&[("SLURM_NTASKS", "4")]), None);
        // As set by Open MPI's mpirun, prterun, MPICH's mpiexec and srun.
        let open_mpi = [("PMIX_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "2"), ("PRTE_LAUNCHED", "1")];
        assert_eq!(by(&open_mpi), job("OMPI_COMM_WORLD_SIZE", Some(2)));
        assert_eq!(by(&[("PMIX_RANK", "1"), ("PRTE_LAUNCHED", "1")]), job("PMIX_RANK", None));
        assert_eq!(by(&[("PMI_RANK", "1"), ("PMI_SIZE", "3")]), job("PMI_SIZE", Some(3)));
        assert_eq!(
            by(&[("SLURM_STEP_NUM_TASKS", "8"), ("PMIX_RANK", "1")]),
            job("SLURM_STEP_NUM_TASKS", Some(8))
        );
    }
}
