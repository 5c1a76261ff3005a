//! Which checkpoints are kept, and which of them with the state of the optimizer: a run resumes from the latest alone, and an
//! average reads weights.

use std::fs;

use super::{CheckpointError, Checkpoints, format};
use crate::store::durable::WriteError;

/// How many checkpoints are kept when a new one is saved. One that is both among the latest and among the best counts for
/// both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Number of latest checkpoints; the newest is kept in any case.
    pub last: usize,
    /// Number of best checkpoints, by validation.
    pub best: usize,
    /// Number of latest checkpoints that are kept whole; of the others the weights alone. The newest is whole in any case.
    pub whole: usize,
}

impl Checkpoints {
    /// Removes the checkpoints that `keep` does not include. `newest` was just written and is known to be complete; it is
    /// kept, so there is always a good one. Files of later steps are not touched: the run was resumed before them and will
    /// overwrite them.
    pub(crate) fn prune(&self, newest: u64, keep: Keep) -> Result<(), CheckpointError> {
        let mut steps = self.steps()?;
        steps.retain(|&step| step <= newest);
        let whole: Vec<u64> = steps.iter().rev().take(keep.whole.max(1)).copied().collect();
        let latest = steps.iter().rev().take(keep.last.max(1));
        let mut kept: Vec<u64> = latest.copied().collect();
        if keep.best > 0 {
            let mut scored = self.scored()?;
            scored.retain(|&step| step <= newest);
            kept.extend(scored.into_iter().take(keep.best));
        }
        for step in steps.into_iter().filter(|step| !kept.contains(step) || !whole.contains(step)) {
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
