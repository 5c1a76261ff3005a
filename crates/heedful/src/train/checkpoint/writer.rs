//! Writes checkpoints in the background while training continues.
//!
//! A checkpoint is a copy, so the run can update its model immediately. Only one checkpoint is written at a
//! time.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::{Checkpoint, CheckpointError, Checkpoints, Keep};

/// Writes to one folder in the background.
#[derive(Debug)]
pub(crate) struct Writer {
    checkpoints: Arc<Checkpoints>,
    keep: Keep,
    pending: Option<JoinHandle<Result<(), CheckpointError>>>,
}

impl Writer {
    /// A writer to `checkpoints`.
    pub(crate) fn new(checkpoints: Checkpoints, keep: Keep) -> Writer {
        Writer { checkpoints: Arc::new(checkpoints), keep, pending: None }
    }

    /// Starts to write a checkpoint.
    ///
    /// # Panics
    /// If the previous checkpoint was not awaited: see [`Writer::finish`].
    pub(crate) fn save(&mut self, checkpoint: Checkpoint) {
        assert!(self.pending.is_none(), "Writer::save: a checkpoint is being written");
        let (checkpoints, keep) = (self.checkpoints.clone(), self.keep);
        let write = move || checkpoints.save(&checkpoint, keep);
        self.pending = Some(thread::spawn(write));
    }

    /// Waits until the checkpoint is durable.
    pub(crate) fn finish(&mut self) -> Result<(), CheckpointError> {
        match self.pending.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }

    /// The checkpoints to which this writes.
    pub(crate) fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }
}

impl Drop for Writer {
    /// Completes the last checkpoint even if the run ends with an error. [`Writer::finish`] reports write
    /// errors.
    fn drop(&mut self) {
        if let Some(pending) = self.pending.take() {
            let _ = pending.join();
        }
    }
}
