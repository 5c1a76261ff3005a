//! The MPI library and its functions.
//!
//! 1. `library` finds the library that belongs to the launcher.
//! 2. `abi` has the constants that differ between the three ABIs: Open MPI, MPICH, and the MPI 5 standard.
//! 3. `calls` has the dozen functions that are used.
//! 4. `transport` moves bytes with them.

mod abi;
mod calls;
mod library;
mod transport;

use super::{Launched, MpiUnavailable, OPEN_MPI, launched};
use crate::collective::Group;

/// Joins the processes of this launch. It may be called once in a process.
pub fn join() -> Result<Group, MpiUnavailable> {
    Group::open(transport::Mpi::join)
}

/// Version string of the library that would be used. Nothing is started.
pub fn library() -> Result<String, MpiUnavailable> {
    library::find().and_then(calls::Calls::load).map(|calls| calls.version())
}

fn check_launcher(size: usize, library: &str) -> Result<(), MpiUnavailable> {
    match launched() {
        Some(Launched { variable, processes: Some(launched) }) if launched > 1 && size == 1 => {
            Err(MpiUnavailable::Alone { variable, launched, library: library.to_owned() })
        }
        _ => Ok(()),
    }
}
