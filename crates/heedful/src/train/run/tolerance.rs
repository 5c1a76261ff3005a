//! What a run does when a file cannot be written: the model is never lost, and nothing else ends the run.
//!
//! ```text
//! model        has room of its own (store/reserve); older checkpoints make way for it. If both fail, the run ends with what is there
//! checkpoint   the run says so and goes on without it; the next one is tried again, and the one before stays
//! logs         the run says so once and goes on; they have a gap
//! ```

use super::Event;
use super::session::Session;
use crate::Result;
use crate::plot::Status;
use crate::store::durable::WriteError;
use crate::store::reserve::Reserve;
use crate::store::weights::{Weights, room};
use crate::tasks::folder::{FolderError, MODEL};
use crate::train::checkpoint::Keep;
use crate::train::log::Record;

impl Session<'_> {
    /// Replaces the model in the folder of the run.
    pub(super) fn save_model(&mut self, weights: &Weights) -> Result<()> {
        // It must not take the room that is free now.
        self.await_checkpoint();
        self.reserve = None;
        let mut saved = self.folder.save(weights);
        if matches!(saved, Err(FolderError::Write(WriteError::Full { .. }))) && self.has_made_way() {
            saved = self.folder.save(weights);
        }
        saved?;
        self.reserve =
            Reserve::beside(&self.folder.path.join(MODEL), room(self.trainer.model().params())).ok();
        Ok(())
    }

    /// Removes all checkpoints but the newest.
    fn has_made_way(&mut self) -> bool {
        let checkpoints = self.writer.checkpoints();
        let steps = checkpoints.steps().unwrap_or_default();
        let newest_alone = Keep { last: 1, best: 0, whole: 1 };
        steps.len() > 1 && checkpoints.prune(steps[steps.len() - 1], newest_alone).is_ok()
    }

    /// Waits until the checkpoint that is being written is safe on the disk, or tells why it never will be.
    pub(super) fn await_checkpoint(&mut self) {
        if let Err(error) = self.writer.finish() {
            self.saved_step = None;
            self.warn(&format!("{error}; the run goes on without this checkpoint"));
        }
    }

    /// Removes what is not needed of the checkpoints of a run that has finished.
    pub(super) fn tidy_checkpoints(&mut self) {
        let pruned = self.writer.checkpoints().prune(self.step, self.recipe.keep_finished());
        if let Err(error) = pruned {
            self.warn(&format!("the checkpoints take more space than they have to: {error}"));
        }
    }

    pub(super) fn write(&mut self, record: Record) {
        let written = self.journal.write(record);
        self.keep_going(written);
    }

    pub(super) fn publish(&mut self, status: Status) {
        let written = self.journal.publish(status);
        self.keep_going(written);
    }

    /// Whether the logs were written or not.
    pub(super) fn keep_going(&mut self, written: Result<()>) {
        if let Err(error) = written
            && !std::mem::replace(&mut self.has_log_gap, true)
        {
            self.warn(&format!("{error}; the run goes on, and its logs have a gap"));
        }
    }

    fn warn(&mut self, warning: &str) {
        self.watcher.observe(&Event::Warning(warning));
    }
}
