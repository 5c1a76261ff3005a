//! The final model: the average of several checkpoints, if it is not worse than the best model.

use std::cmp::Ordering;
use std::fmt;

use super::error::unreachable_ranks;
use super::session::Session;
use super::validated::score;
use super::{Ending, Event, FinalModel};
use crate::Result;
use crate::recipe::Averaging;
use crate::store::weights::Weights;
use crate::train::{Averaged, average};

impl Session<'_> {
    /// Saves the current weights as the model of a run without validation.
    pub(super) fn save_current(&mut self) -> Result<()> {
        let weights = self.trainer.with_gathered_average(|model| Weights::of(model.params()));
        let weights = weights.map_err(unreachable_ranks)?;
        self.save_model(&weights)
    }

    /// Replaces the model in the folder of the run by the average of checkpoints, if configured and not
    /// worse, and prunes the checkpoints.
    pub(super) fn conclude(&mut self, ending: Ending) -> Result<FinalModel> {
        if ending == Ending::Interrupted {
            // The best or current model is already saved; a resumed run may improve it.
            return Ok(self.saved_model());
        }
        let model = self.averaged()?;
        self.tidy_checkpoints();
        Ok(model.unwrap_or_else(|| self.saved_model()))
    }

    fn saved_model(&self) -> FinalModel {
        FinalModel::Step(self.patience.best.map_or(self.step, |_| self.patience.best_step))
    }

    fn averaged(&mut self) -> Result<Option<FinalModel>> {
        let steps = self.steps_to_average()?;
        if steps.len() < 2 {
            return Ok(None);
        }
        let files: Vec<_> = steps.iter().map(|&step| self.writer.checkpoints().path(step)).collect();
        let weights = average(&files, Averaged::Validated)?;
        if !self.is_not_worse_than_best(&weights)? {
            return Ok(None);
        }
        self.save_model(&weights)?;
        Ok(Some(FinalModel::MeanOf(steps)))
    }

    fn steps_to_average(&self) -> Result<Vec<u64>> {
        let (checkpoints, count) = (self.writer.checkpoints(), self.recipe.checkpoint.average_count);
        let mut steps = match self.recipe.checkpoint.average {
            Averaging::None => Vec::new(),
            Averaging::Best => checkpoints.best_up_to(count)?,
            Averaging::Last => checkpoints.last(count.min(checkpoints.steps()?.len()))?,
        };
        steps.sort_unstable();
        Ok(steps)
    }

    fn is_not_worse_than_best(&mut self, weights: &Weights) -> Result<bool> {
        let (Some(set), Some(best)) = (&self.validation, self.patience.best) else { return Ok(true) };
        self.watcher.observe(&Event::Validating);
        let model = self.trainer.model();
        let trained = Weights::of(model.params());
        weights.install(model.params()).expect("checkpoints of this run fit its model");
        let validated = set.validate(&self.recipe);
        trained.install(model.params()).expect("these were its weights a moment ago");
        Ok(score(&validated?, self.recipe.validation.best_by).compare(&best) != Ordering::Less)
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ending::AllSteps => "all steps are done",
            Ending::AllTime => "the time limit is reached",
            Ending::OutOfPatience => "early stopping: no validation improved for too long",
            Ending::Interrupted => "interrupted",
        })
    }
}
