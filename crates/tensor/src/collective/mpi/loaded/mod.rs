//! The library and what is asked of it.
//!
//! 1. `library` finds the one that belongs to the launcher.
//! 2. `abi` has what differs between the three kinds: Open MPI's, MPICH's, and that of the MPI 5 standard.
//! 3. `calls` are the functions that are used, about ten.
//! 4. `transport` moves bytes with them.

mod abi;
mod calls;
mod library;
mod transport;

use super::{Launched, OPEN_MPI, Unavailable, launched};
use crate::collective::Group;

/// Joins the processes that a launcher has started with this one. It may be called once in a process.
pub fn join() -> Result<Group, Unavailable> {
    Group::open(transport::Mpi::join)
}

/// The library that would be used, in its own words. Nothing is started.
pub fn library() -> Result<String, Unavailable> {
    library::find().and_then(calls::Calls::load).map(|calls| calls.version())
}

fn check_launcher(size: usize, library: &str) -> Result<(), Unavailable> {
    match launched() {
        Some(Launched { variable, processes: Some(launched) }) if launched > 1 && size == 1 => {
            Err(Unavailable::Alone { variable, launched, library: library.to_owned() })
        }
        _ => Ok(()),
    }
}
