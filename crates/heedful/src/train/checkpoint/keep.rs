//! Which checkpoints stay.

use std::fs;

use super::{CheckpointError, Checkpoints};
use crate::store::durable::WriteError;

/// How many checkpoints stay when a new one is safe. One that is both late and good counts for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// So many of the latest; the newest one stays in any case.
    pub last: usize,
    /// So many of the best by validation.
    pub best: usize,
}

impl Checkpoints {
    /// Removes what `keep` has no use for. `newest` was written a moment ago and is known to be whole; it stays, so
    /// there is a good one always. Files of later steps are not touched: the run was taken up before them, and will
    /// write them again.
    pub(super) fn prune(&self, newest: u64, keep: Keep) -> Result<(), CheckpointError> {
        let mut steps = self.steps()?;
        steps.retain(|&step| step <= newest);
        let latest = steps.iter().rev().take(keep.last.max(1));
        let mut stay: Vec<u64> = latest.copied().collect();
        if keep.best > 0 {
            let mut scored = self.scored()?;
            scored.retain(|&step| step <= newest);
            stay.extend(scored.into_iter().take(keep.best));
        }
        for step in steps.into_iter().filter(|step| !stay.contains(step)) {
            let path = self.path(step);
            fs::remove_file(&path).map_err(|cause| WriteError::Failed { path, cause })?;
        }
        Ok(())
    }
}
