//! Handling of write failures: the model is never lost, and failures to write other files do not end the run.
//!
//! ```text
//! model        has reserved space (store/reserve); if that fails, older checkpoints are deleted; if that fails, the run ends
//! checkpoint   the run warns and continues without it; the one before stays, and the next one is written
//! logs         the run warns once and continues; the logs have a gap
//! ```

use super::Event;
use super::session::Session;
use crate::Result;
use crate::plot::Status;
use crate::store::durable::WriteError;
use crate::store::reserve::Reserve;
use crate::store::weights::{Weights, max_file_size};
use crate::tasks::folder::{FolderError, MODEL};
use crate::train::checkpoint::Keep;
use crate::train::log::Record;

impl Session<'_> {
    /// Replaces the model in the folder of the run.
    pub(super) fn save_model(&mut self, weights: &Weights) -> Result<()> {
        // A pending checkpoint must not take the reserved space.
        self.await_checkpoint();
        self.reserve = None;
        let mut saved = self.folder.save(weights);
        if matches!(saved, Err(FolderError::Write(WriteError::Full { .. }))) && self.removed_old_checkpoints()
        {
            saved = self.folder.save(weights);
        }
        saved?;
        self.reserve =
            Reserve::for_target(&self.folder.path.join(MODEL), max_file_size(self.trainer.model().params()))
                .ok();
        Ok(())
    }

    /// Removes all checkpoints except the newest.
    fn removed_old_checkpoints(&mut self) -> bool {
        let checkpoints = self.writer.checkpoints();
        let steps = checkpoints.steps().unwrap_or_default();
        let newest_alone = Keep { last: 1, best: 0, full: 1 };
        steps.len() > 1 && checkpoints.prune(steps[steps.len() - 1], newest_alone).is_ok()
    }

    /// Waits until the pending checkpoint is durable, and warns if it cannot be written.
    pub(super) fn await_checkpoint(&mut self) {
        if let Err(error) = self.writer.finish() {
            self.saved_step = None;
            self.warn(&format!("{error}; the run continues without this checkpoint"));
        }
    }

    /// Removes the checkpoints and states that a finished run does not need.
    pub(super) fn tidy_checkpoints(&mut self) {
        let pruned = self.writer.checkpoints().prune(self.step, self.recipe.keep_finished());
        if let Err(error) = pruned {
            self.warn(&format!("the checkpoints could not be pruned: {error}"));
        }
    }

    pub(super) fn write(&mut self, record: Record) {
        let written = self.journal.write(record);
        self.warn_once_about_logs(written);
    }

    pub(super) fn publish(&mut self, status: Status) {
        let written = self.journal.publish(status);
        self.warn_once_about_logs(written);
    }

    /// Warns once if the logs cannot be written.
    pub(super) fn warn_once_about_logs(&mut self, written: Result<()>) {
        if let Err(error) = written
            && !std::mem::replace(&mut self.has_log_gap, true)
        {
            self.warn(&format!("{error}; the run continues, and its logs have a gap"));
        }
    }

    fn warn(&mut self, warning: &str) {
        self.watcher.observe(&Event::Warning(warning));
    }
}
