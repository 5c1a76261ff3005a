//! Whether what a run writes fits on the disk of its folder, known before the first step.
//!
//! ```text
//! model        parameters × 4 bytes, twice: a new one is whole before the old one goes
//! checkpoint   parameters × (value, mean and mean square of its gradient, moving average if there is one) × 4 bytes
//! for averages parameters × (value, moving average) × 4 bytes
//! ```
//!
//! Logs and the report are small beside these. What the folder has already is room too.

use std::fs;
use std::path::Path;

use super::prepare::Prepared;
use crate::recipe::Recipe;
use crate::store::durable::Bytes;
use crate::tasks::folder::MODEL;
use crate::train::checkpoint::{CheckpointError, Checkpoints};
use crate::{Error, Result};

/// Refuses a run that its disk cannot hold. Where the system does not tell what is free, no run is refused.
pub(super) fn check(recipe: &Recipe, prepared: &Prepared) -> Result<()> {
    let Ok(free) = fs4::available_space(&prepared.folder.path) else { return Ok(()) };
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let checkpoints = &prepared.checkpoints;
    let there = size(&prepared.folder.path.join(MODEL)) + total(checkpoints, size)?;
    let wanted =
        Wanted::of(recipe, prepared.model.params().announced() as u64, prepared.validation.is_some());
    wanted.check(free + there, &prepared.folder.path)
}

fn total(checkpoints: &Checkpoints, size: impl Fn(&Path) -> u64) -> Result<u64, CheckpointError> {
    Ok(checkpoints.steps()?.into_iter().map(|step| size(&checkpoints.path(step))).sum())
}

/// What a run writes, in bytes.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    model: u64,
    checkpoint: u64,
    /// At the moment when it is most.
    most: u64,
    /// The same with the fewest checkpoints.
    least: u64,
}

impl Wanted {
    fn of(recipe: &Recipe, parameters: u64, is_validated: bool) -> Wanted {
        let keep = recipe.keep();
        let model = parameters.saturating_mul(4);
        let averages = u64::from(recipe.training.ema.is_some());
        let [checkpoint, weights] = [3, 1].map(|sets| model.saturating_mul(sets + averages));
        let steps = recipe.training.steps.unwrap_or(u64::MAX);
        let validations = match recipe.validation.every_time {
            _ if !is_validated => 0,
            Some(_) => steps,
            None => steps / recipe.validation.every + 1,
        };
        let kept = (keep.last.max(1) as u64).saturating_add((keep.best as u64).min(validations)).min(steps);
        let whole = kept.min(keep.whole as u64);
        // One more is whole before the oldest goes.
        let coming = u64::from(kept < steps);
        let checkpoints = checkpoint.saturating_mul(whole + coming);
        let sum = |parts: [u64; 3]| parts.into_iter().fold(0, u64::saturating_add);
        Wanted {
            model,
            checkpoint,
            most: sum([2 * model, checkpoints, weights.saturating_mul(kept - whole)]),
            least: sum([2 * model, checkpoint, if steps > 1 { checkpoint } else { 0 }]),
        }
    }

    fn check(&self, room: u64, folder: &Path) -> Result<()> {
        if self.most <= room {
            return Ok(());
        }
        let [needed, room, model, checkpoint, least] =
            [self.most, room, self.model, self.checkpoint, self.least].map(Bytes);
        Err(Error::new(format!(
            "the run needs {needed} on the disk of {}, where {room} are free for it: a model of {model}, and checkpoints of \
             {checkpoint} each. Free some space, or name a folder on another disk (--out); with the fewest checkpoints \
             (checkpoint.keep_last = 1, checkpoint.keep_best = 0) it needs {least}",
            folder.display()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_its_disk_cannot_hold_is_refused_with_its_sizes() {
        let mut recipe = Recipe::default();
        let most =
            |recipe: &Recipe, is_validated| Wanted::of(recipe, 1_000_000, is_validated).most / 4_000_000;
        // The model twice, two whole checkpoints and one that comes, the weights of five.
        assert_eq!(most(&recipe, true), 2 + 3 * 3 + 5);
        assert_eq!(most(&recipe, false), 2 + 3 * 3);
        recipe.training.ema = Some(0.99);
        assert_eq!(most(&recipe, true), 2 + 3 * 4 + 5 * 2);
        recipe.training.ema = None;
        recipe.training.steps = Some(1);
        assert_eq!(most(&recipe, true), 2 + 3);
        (recipe.checkpoint.keep_last, recipe.training.steps) = (1, Some(1000));
        assert_eq!(most(&recipe, false), 2 + 2 * 3);
        recipe.checkpoint.keep_best = 0;
        let wanted = Wanted::of(&recipe, 7_500_000, false);
        assert_eq!(wanted.least, wanted.most);
        recipe.checkpoint.keep_last = 9;
        assert_eq!(Wanted::of(&recipe, 7_500_000, true).least, wanted.most);
        assert!(wanted.check(240_000_000, Path::new("run")).is_ok());
        let error = wanted.check(62_000_000, Path::new("run")).expect_err("a small disk").to_string();
        for part in [
            "run",
            "240.0 MB",
            "62.0 MB",
            "a model of 30.0 MB",
            "checkpoints of 90.0 MB",
            "it needs 240.0 MB",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
