//! No MPI.

use super::Unavailable;
use crate::collective::Group;

/// Says that there is none.
pub fn join() -> Result<Group, Unavailable> {
    Err(Unavailable::NotBuilt)
}

/// Says that there is none.
pub fn library() -> Result<String, Unavailable> {
    Err(Unavailable::NotBuilt)
}
