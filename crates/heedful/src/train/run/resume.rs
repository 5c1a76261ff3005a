//! Resumes a run from its newest checkpoint.

use super::prepare::with_absolute_paths;
use super::{Event, Watcher, device};
use crate::recipe::Recipe;
use crate::train::StepTrainer;
use crate::train::checkpoint::{Checkpoint, Checkpoints, Progress};
use crate::{Error, Result};

/// Restores the newest intact checkpoint; returns its step and progress.
pub(super) fn restore(
    recipe: &Recipe,
    checkpoints: &Checkpoints,
    trainer: &mut StepTrainer,
    watcher: &mut dyn Watcher,
) -> Result<Option<(u64, Progress)>> {
    let (checkpoint, warnings) = checkpoints.latest()?;
    for warning in &warnings {
        watcher.observe(&Event::Warning(warning));
    }
    let Some(Checkpoint { trainer: state, progress }) = checkpoint else { return Ok(None) };
    let step = state.step;
    trainer.restore(&state).map_err(|why| {
        Error::new(format!(
            "the checkpoint of step {step} does not fit the recipe: {why}. Undo the change of the recipe, or start a new run"
        ))
    })?;
    let mut completed = recipe.clone();
    progress.plan.iter().for_each(|plan| plan.complete(&mut completed));
    if progress.recipe != fingerprint(&completed) {
        watcher.observe(&Event::Warning(
            "settings that determine the weights have changed since the last checkpoint: the run cannot be reproduced from its recipe",
        ));
    }
    let now = trainer.model().params().device().fingerprint();
    if let Some(warning) = device::warning(progress.device.as_deref(), &now) {
        watcher.observe(&Event::Warning(&warning));
    }
    Ok(Some((step, progress)))
}

/// The fingerprint of the recipe with absolute paths, which is independent of the working directory.
pub(super) fn fingerprint(recipe: &Recipe) -> String {
    with_absolute_paths(recipe).fingerprint()
}
