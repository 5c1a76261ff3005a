//! Writes checkpoints while training goes on.
//!
//! A checkpoint is a copy, so the run may change its model at once. One is written at a time: the next one, and the
//! end of the run, wait for the one before. What went wrong is told then.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::{Checkpoint, CheckpointError, Checkpoints, Keep};

/// Writes to one folder in the background.
#[derive(Debug)]
pub struct Writer {
    checkpoints: Arc<Checkpoints>,
    keep: Keep,
    pending: Option<JoinHandle<Result<(), CheckpointError>>>,
}

impl Writer {
    /// Writes to `checkpoints`.
    pub fn new(checkpoints: Checkpoints, keep: Keep) -> Writer {
        Writer { checkpoints: Arc::new(checkpoints), keep, pending: None }
    }

    /// Begins to write; an error is that of the checkpoint before, and then this one is not begun.
    pub fn save(&mut self, checkpoint: Checkpoint) -> Result<(), CheckpointError> {
        self.finish()?;
        let (checkpoints, keep) = (self.checkpoints.clone(), self.keep);
        let write = move || checkpoints.save(&checkpoint, keep);
        self.pending = Some(thread::spawn(write));
        Ok(())
    }

    /// Waits until everything is safe.
    pub fn finish(&mut self) -> Result<(), CheckpointError> {
        match self.pending.take().map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(outcome)) => outcome,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }

    /// The folder that is written to.
    pub fn checkpoints(&self) -> &Checkpoints {
        &self.checkpoints
    }
}

impl Drop for Writer {
    /// A run that ends by an error still leaves its last checkpoint whole. Who wants to know whether it was written
    /// calls [`Writer::finish`].
    fn drop(&mut self) {
        if let Some(pending) = self.pending.take() {
            let _ = pending.join();
        }
    }
}
