//! Replaces `loaded` in a build without MPI.

use super::Unavailable;
use crate::collective::Group;

/// Always an error.
pub fn join() -> Result<Group, Unavailable> {
    Err(Unavailable::NotBuilt)
}

/// Always an error.
pub fn library() -> Result<String, Unavailable> {
    Err(Unavailable::NotBuilt)
}
