//! Checks before the first step whether the files of a run fit on the disk.
//!
//! ```text
//! model          parameters × 4 bytes, twice: the old file is deleted after the new one is complete
//! checkpoint     parameters × (value, Adam's first and second moment, moving average if there is one) × 4 bytes
//! weights only   parameters × (value, moving average if there is one) × 4 bytes
//! ```
//!
//! Logs and the report are negligible. The space of existing files in the folder counts as available.

use std::fs;
use std::path::Path;

use super::prepare::Prepared;
use crate::recipe::Recipe;
use crate::store::durable::Bytes;
use crate::system;
use crate::tasks::folder::MODEL;
use crate::train::checkpoint::{CheckpointError, Checkpoints};
use crate::{Error, Result};

/// Rejects a run that does not fit on its disk. If the system does not report the free space, no run is
/// rejected.
pub(super) fn check(recipe: &Recipe, prepared: &Prepared) -> Result<()> {
    let Ok(free) = system::available_space(&prepared.folder.path) else { return Ok(()) };
    let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len());
    let checkpoints = &prepared.checkpoints;
    let existing = size(&prepared.folder.path.join(MODEL)) + total(checkpoints, size)?;
    let disk_use = DiskUse::of(
        recipe,
        prepared.model.params().registered_elements() as u64,
        prepared.validation.is_some(),
    );
    disk_use.check(free + existing, &prepared.folder.path)
}

fn total(checkpoints: &Checkpoints, size: impl Fn(&Path) -> u64) -> Result<u64, CheckpointError> {
    Ok(checkpoints.steps()?.into_iter().map(|step| size(&checkpoints.path(step))).sum())
}

/// The disk use of a run in bytes.
#[derive(Debug, PartialEq, Eq)]
struct DiskUse {
    model: u64,
    checkpoint: u64,
    /// Maximum total.
    most: u64,
    /// Maximum total with the fewest checkpoints.
    least: u64,
}

impl DiskUse {
    fn of(recipe: &Recipe, parameters: u64, is_validated: bool) -> DiskUse {
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
        let full = kept.min(keep.full as u64);
        // The oldest is deleted after the newest is complete.
        let in_progress = u64::from(kept < steps);
        let checkpoints = checkpoint.saturating_mul(full + in_progress);
        let sum = |parts: [u64; 3]| parts.into_iter().fold(0, u64::saturating_add);
        DiskUse {
            model,
            checkpoint,
            most: sum([2 * model, checkpoints, weights.saturating_mul(kept - full)]),
            least: sum([2 * model, checkpoint, if steps > 1 { checkpoint } else { 0 }]),
        }
    }

    fn check(&self, available: u64, folder: &Path) -> Result<()> {
        if self.most <= available {
            return Ok(());
        }
        let [needed, available, model, checkpoint, least] =
            [self.most, available, self.model, self.checkpoint, self.least].map(Bytes);
        Err(Error::new(format!(
            "the run needs {needed} on the disk of {}, where {available} are available: a model of {model}, and checkpoints of \
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
    fn a_run_that_does_not_fit_on_its_disk_is_rejected_with_its_sizes() {
        let mut recipe = Recipe::default();
        let most =
            |recipe: &Recipe, is_validated| DiskUse::of(recipe, 1_000_000, is_validated).most / 4_000_000;
        // Twice the model, two full checkpoints and one in progress, the weights of five.
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
        let disk_use = DiskUse::of(&recipe, 7_500_000, false);
        assert_eq!(disk_use.least, disk_use.most);
        recipe.checkpoint.keep_last = 9;
        assert_eq!(DiskUse::of(&recipe, 7_500_000, true).least, disk_use.most);
        assert!(disk_use.check(240_000_000, Path::new("run")).is_ok());
        let error = disk_use.check(62_000_000, Path::new("run")).expect_err("a small disk").to_string();
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
