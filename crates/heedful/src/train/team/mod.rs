//! Distributed training: the ranks of a run. One rank is the leader, the others are followers.
//!
//! ```text
//! leader      reads, writes, validates, decides; broadcasts a command before each joint computation    `Command`
//! followers   have no files and make no decisions; they execute commands                               `run::follow`
//! ```
//!
//! So a run needs no shared file system, and all decisions that affect the weights are made in one process.
//! The batches of a step are sent with its command: they are small compared to the gradients.

mod wire;

mod command;

mod losses;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use heedful_tensor::collective::{Failure, Group, is_divisible, mpi};
use heedful_tensor::cpu::threads;
use heedful_tensor::cuda::Gpus;

use crate::system::{allowed_cores, host_name};

pub(crate) use command::{Command, RankDevice, TrainerSetup};
pub(super) use losses::{add_results, gather_losses};

/// A rank's handle to the ranks of a run. Clones share it; when the leader's last clone is dropped, the
/// followers end.
#[derive(Clone)]
pub struct Team {
    group: Group,
    /// The GPUs of all ranks, once joined.
    gpus: Arc<OnceLock<Gpus>>,
    _end: Arc<End>,
}

/// Ends the followers when the leader's last clone is dropped.
struct End {
    group: Group,
}

/// The batches of a step cannot be divided among the ranks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{batches} {} cannot be divided among {ranks} ranks: the number of ranks must be a power of two that divides \
     training.accumulate, so that gradients are added in the order of one machine; {}",
    if *batches == 1 { "batch of a step (training.accumulate)" } else { "batches of a step (training.accumulate)" },
    remedy(*batches)
)]
pub struct NotDivisible {
    /// `training.accumulate`.
    pub batches: usize,
    /// The number of ranks.
    pub ranks: usize,
}

impl crate::error::Cause for NotDivisible {}

fn remedy(batches: usize) -> String {
    let possible: Vec<String> = (0..usize::BITS - 1)
        .map(|power| 1_usize << power)
        .take_while(|ranks| is_divisible(batches, *ranks))
        .map(|ranks| ranks.to_string())
        .collect();
    format!("start {} of them, or choose another --accumulate", possible.join(" or "))
}

impl Team {
    /// Joins the processes started by an MPI launcher.
    pub fn join_mpi() -> Result<Team, mpi::MpiUnavailable> {
        mpi::join().map(Team::new)
    }

    /// A team of the processes of a group.
    pub fn new(group: Group) -> Team {
        Team { _end: Arc::new(End { group: group.clone() }), gpus: Arc::default(), group }
    }

    /// The GPUs of all ranks. The first call is collective: all ranks join.
    pub(super) fn join_gpus(&self) -> Result<&Gpus, Failure> {
        if self.gpus.get().is_none() {
            let joined = Gpus::join(&self.group)?;
            self.gpus.get_or_init(|| joined);
        }
        Ok(self.gpus.get().expect("they were just joined"))
    }

    /// The GPUs of all ranks, if joined.
    pub(super) fn gpus(&self) -> Option<&Gpus> {
        self.gpus.get()
    }

    /// The batches of a step that this rank computes.
    pub(super) fn own(&self, batches: usize) -> Range<usize> {
        let each = batches / self.size();
        self.group.rank() * each..(self.group.rank() + 1) * each
    }

    /// Whether this rank is the leader.
    pub fn is_leader(&self) -> bool {
        self.group.is_first()
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.group.size()
    }

    /// The group of processes.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Sets the number of threads to this rank's share of the machine: its allowed cores, divided by the
    /// number of ranks with the same host and cores. Returns a description of all ranks.
    pub fn divide_cores(&self) -> Result<String, Failure> {
        let cores = threads::available_cores();
        let host_and_cores =
            format!("{} {}", host_name().unwrap_or_default(), allowed_cores().unwrap_or_default());
        let places = self.group.all_gather(host_and_cores.clone().into_bytes())?;
        let sharing = places.iter().filter(|other| **other == host_and_cores.as_bytes()).count();
        let own = (cores / sharing.max(1)).max(1);
        threads::set_thread_count(own);
        let all = self.group.all_gather((own as u64).to_ne_bytes().to_vec())?;
        let counts =
            all.iter().map(|bytes| bytes.first_chunk().map_or(1, |&count| u64::from_ne_bytes(count)));
        let (fewest, most) = counts.fold((u64::MAX, 0), |(a, b), count| (a.min(count), b.max(count)));
        let threads =
            |count: u64| if count == 1 { "1 thread".to_owned() } else { format!("{count} threads") };
        let each = if fewest == most { threads(most) } else { format!("{fewest} to {}", threads(most)) };
        let hosts: HashSet<&[u8]> =
            places.iter().map(|place| place.split(|&byte| byte == b' ').next().unwrap_or_default()).collect();
        let machines =
            if hosts.len() == 1 { "1 machine".to_owned() } else { format!("{} machines", hosts.len()) };
        Ok(format!("{each} each, on {machines}"))
    }

    /// Checks that steps of this many batches can be divided among the ranks.
    pub fn check(&self, batches: usize) -> Result<(), NotDivisible> {
        let ranks = self.size();
        if is_divisible(batches, ranks) { Ok(()) } else { Err(NotDivisible { batches, ranks }) }
    }

    /// Receives the leader's next command.
    pub(crate) fn next_command(&self) -> Result<Command<'static>, Failure> {
        Ok(Command::from_bytes(&self.group.broadcast(Vec::new())?))
    }

    /// Broadcasts a command from the leader to the followers; does nothing on a follower.
    pub(crate) fn announce(&self, command: &Command<'_>) -> Result<(), Failure> {
        if self.is_leader() && self.size() > 1 {
            self.group.broadcast(command.to_bytes())?;
        }
        Ok(())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.group.abort();
        } else if self.group.is_first() && self.group.size() > 1 {
            // Followers that have already exited do not matter.
            let _ = self.group.broadcast(Command::End.to_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
