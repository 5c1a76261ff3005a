//! Selects which checkpoints are kept, and which of them with the optimizer state: a run resumes only from
//! the latest, and averaging needs only the weights.

use std::fs;

use super::{CheckpointError, Checkpoints, format};
use crate::store::durable::WriteError;

/// The numbers of checkpoints to keep when a new one is saved. A checkpoint that is among the latest and
/// among the best counts as both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Number of latest checkpoints. The newest is always kept.
    pub last: usize,
    /// Number of best checkpoints, by validation.
    pub best: usize,
    /// Number of latest checkpoints that keep the optimizer state; the others keep only the weights. The
    /// newest always keeps it.
    pub full: usize,
}

impl Checkpoints {
    /// Removes the checkpoints that `keep` does not include. `newest` was just written and is complete; it is
    /// kept, so that there is always an intact checkpoint. Files of later steps are not changed: the run was
    /// resumed before them and will overwrite them.
    pub(crate) fn prune(&self, newest: u64, keep: Keep) -> Result<(), CheckpointError> {
        let mut steps = self.steps()?;
        steps.retain(|&step| step <= newest);
        let full: Vec<u64> = steps.iter().rev().take(keep.full.max(1)).copied().collect();
        let latest = steps.iter().rev().take(keep.last.max(1));
        let mut kept: Vec<u64> = latest.copied().collect();
        if keep.best > 0 {
            let mut scored = self.scored()?;
            scored.retain(|&step| step <= newest);
            kept.extend(scored.into_iter().take(keep.best));
        }
        for step in steps.into_iter().filter(|step| !kept.contains(step) || !full.contains(step)) {
            let path = self.path(step);
            if kept.contains(&step) {
                format::keep_weights(&path)?;
            } else {
                fs::remove_file(&path).map_err(|cause| WriteError::Failed { path, cause })?;
            }
        }
        Ok(())
    }
}
