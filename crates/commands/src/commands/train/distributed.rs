//! `heedful train --distributed`: the processes started by a launcher train one model together.

use anyhow::{Result, bail};
use clap::ValueEnum;
use heedful::tensor::collective::mpi::{self, Launched};
use heedful::train::run;
use heedful::train::team::Team;

use super::Arguments;
use crate::interrupt::Interrupt;
use crate::progress::Verbosity;

/// How processes connect to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Distributed {
    /// MPI: mpirun, mpiexec or srun starts the processes; HEEDFUL_MPI names its library
    Mpi,
}

/// The role of this process in the run.
pub(super) enum Role {
    /// The only process.
    Single,
    /// Rank 0, which leads the team.
    Leader(Team),
    /// Another rank, whose training has ended.
    Done,
}

/// Joins the team, if the run is distributed. On ranks other than 0 it returns when the training has ended.
pub(super) fn join(arguments: &Arguments) -> Result<Role> {
    let Some(Distributed::Mpi) = arguments.distributed else {
        return match mpi::launched() {
            None | Some(Launched { processes: Some(0 | 1), .. }) => Ok(Role::Single),
            Some(Launched { variable, processes: Some(processes) }) => bail!(
                "{variable} says that {processes} processes were started: add --distributed mpi to train one model with all of \
                 them, or start one process"
            ),
            Some(Launched { variable, processes: None }) => bail!(
                "{variable} says that a launcher has started this process, and maybe others that would write the same run: add \
                 --distributed mpi to train one model with all of them, or start one process without the launcher"
            ),
        };
    };
    let team = Team::join_mpi()?;
    let threads = if arguments.threads.is_chosen() {
        arguments.threads.set_up();
        None
    } else {
        Some(team.divide_cores()?)
    };
    if team.is_leader() {
        if arguments.quiet.verbosity() == Verbosity::Normal {
            let threads = threads.map_or_else(String::new, |threads| format!(", {threads}"));
            match team.size() {
                1 => eprintln!("heedful: one rank{threads}"),
                ranks => eprintln!("heedful: {ranks} ranks train together{threads}"),
            }
        }
        return Ok(Role::Leader(team));
    }
    // Only the leader handles signals: it saves, and stops the other ranks.
    let _held = Interrupt::hold();
    match run::follow(&team) {
        Ok(()) => Ok(Role::Done),
        Err(error) => {
            eprintln!("heedful: rank {}: {error}", team.group().rank());
            team.group().abort();
            Err(error.into())
        }
    }
}
