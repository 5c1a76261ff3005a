//! MPI, found at run time: nothing of it is needed to build.
//!
//! `loaded` has all that the library is needed for, `absent` stands in for it in a build without the feature `mpi` and on systems
//! other than Unix.

#[cfg_attr(not(all(unix, feature = "mpi")), path = "absent.rs")]
mod loaded;

use super::group::Failure;

pub use loaded::{join, library};

/// Why ranks cannot be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The program was built without it.
    #[error("this program was built without MPI: build it on a Unix system, with the feature `mpi`")]
    NotBuilt,
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

/// Open MPI's launcher sets it.
const OPEN_MPI: &str = "OMPI_COMM_WORLD_SIZE";
/// prterun and other launchers that speak PMIx set it.
const PMIX: &str = "PMIX_RANK";

/// What a launcher has started, by the variable that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The variable.
    pub variable: &'static str,
    /// How many processes; `None` where the launcher says only that this is one of a job's.
    pub processes: Option<usize>,
}

/// What the launcher that started this process has started; `None` where there was no launcher.
pub fn launched() -> Option<Launched> {
    launched_by(|name| std::env::var(name).ok())
}

fn launched_by(value: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    // Slurm sets SLURM_NTASKS for a batch script too, which is one process; a task of several has its number.
    let counts = [OPEN_MPI, "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"];
    let count = |variable: &'static str| {
        Some(Launched { variable, processes: Some(value(variable)?.trim().parse().ok()?) })
    };
    // prterun, and whatever else speaks PMIx, tells each process its number and no process how many there are.
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
        // As mpirun of Open MPI sets them, prterun, MPICH's mpiexec and srun.
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
