//! The ranks of a run that several processes compute: one leads, the others follow.
//!
//! ```text
//! leader      reads, writes, validates, decides;  before it computes something with the others it says what    `Order`
//! followers   have no files and decide nothing: they do what they are told                                     `run::follow`
//! ```
//!
//! So a run needs no file system that all machines share, and everything that decides about weights is decided in one place. A
//! step's batches travel with its order: they are small beside the gradients that come back.

mod wire;

mod order;

mod losses;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use heedful_tensor::collective::{Failure, Group, is_divisible, mpi};
use heedful_tensor::cpu::threads;
use heedful_tensor::cuda::Gpus;

use crate::system::{allowed_cores, host_name};

pub(super) use losses::{add_results, gather_losses};
pub(crate) use order::{Beginning, Order, Place};

/// The ranks of a run, as one of them sees them. Cloning shares it; when the leader's last clone is gone, the followers end.
#[derive(Clone)]
pub struct Team {
    group: Group,
    /// The GPUs of all ranks, once they are used.
    gpus: Arc<OnceLock<Gpus>>,
    _end: Arc<End>,
}

/// Lets the followers end with the leader.
struct End {
    group: Group,
}

/// Batches cannot be divided among the ranks.
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
    /// The processes that an MPI launcher has started.
    pub fn join_mpi() -> Result<Team, mpi::Unavailable> {
        mpi::join().map(Team::new)
    }

    /// The processes of a group.
    pub fn new(group: Group) -> Team {
        Team { _end: Arc::new(End { group: group.clone() }), gpus: Arc::default(), group }
    }

    /// The GPUs of all ranks, which all of them join at the first call.
    pub(super) fn join_gpus(&self) -> Result<&Gpus, Failure> {
        if self.gpus.get().is_none() {
            let joined = Gpus::join(&self.group)?;
            self.gpus.get_or_init(|| joined);
        }
        Ok(self.gpus.get().expect("they were just joined"))
    }

    /// The GPUs of all ranks, if they are used.
    pub(super) fn gpus(&self) -> Option<&Gpus> {
        self.gpus.get()
    }

    /// The batches of a step that this rank computes.
    pub(super) fn own(&self, batches: usize) -> Range<usize> {
        let each = batches / self.size();
        self.group.rank() * each..(self.group.rank() + 1) * each
    }

    /// Whether this is the one that leads.
    pub fn is_leader(&self) -> bool {
        self.group.is_first()
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.group.size()
    }

    /// The processes.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Computes with this rank's share of the machine from here on: the cores that it may use, divided by the ranks that may use
    /// the same ones. Returns what all ranks do, in words.
    pub fn divide_cores(&self) -> Result<String, Failure> {
        let cores = threads::available_cores();
        let place = format!("{} {}", host_name().unwrap_or_default(), allowed_cores().unwrap_or_default());
        let places = self.group.all_gather(place.clone().into_bytes())?;
        let sharing = places.iter().filter(|other| **other == place.as_bytes()).count();
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

    /// Whether steps of so many batches can be divided.
    pub fn check(&self, batches: usize) -> Result<(), NotDivisible> {
        let ranks = self.size();
        if is_divisible(batches, ranks) { Ok(()) } else { Err(NotDivisible { batches, ranks }) }
    }

    /// What the leader does next.
    pub(crate) fn next_order(&self) -> Result<Order<'static>, Failure> {
        Ok(Order::from_bytes(&self.group.broadcast(Vec::new())?))
    }

    /// Tells the followers what the leader does next; said by a follower it has no effect.
    pub(crate) fn announce(&self, order: &Order<'_>) -> Result<(), Failure> {
        if self.is_leader() && self.size() > 1 {
            self.group.broadcast(order.to_bytes())?;
        }
        Ok(())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.group.abort();
        } else if self.group.is_first() && self.group.size() > 1 {
            // Whoever is gone by now needs no end.
            let _ = self.group.broadcast(Order::End.to_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
