//! Replaces `loaded` in a build without MPI.

use super::MpiUnavailable;
use crate::collective::Group;

/// Always an error.
pub fn join() -> Result<Group, MpiUnavailable> {
    Err(MpiUnavailable::NotBuilt)
}

/// Always an error.
pub fn library() -> Result<String, MpiUnavailable> {
    Err(MpiUnavailable::NotBuilt)
}
