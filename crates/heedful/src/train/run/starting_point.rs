//! The starting point of a run: random weights, a pretrained model, or its own checkpoint.

use std::path::Path;

use super::{Event, Watcher};
use crate::data::SpecialTokens;
use crate::recipe::Recipe;
use crate::tasks::folder::ModelFolder;
use crate::tasks::pretrained::Pretrained;
use crate::train::checkpoint::Checkpoints;
use crate::{Error, Result};

/// The starting point of a run.
pub(super) enum StartingPoint {
    /// Random weights.
    Scratch,
    /// The pretrained model of `model.init_from`.
    Pretrained(Box<Pretrained>),
    /// A checkpoint. The folder has everything inherited from a pretrained model, which may have been
    /// deleted.
    Checkpoint(SpecialTokens),
}

impl StartingPoint {
    /// Determines the starting point. A run without a checkpoint opens its pretrained model, which must be
    /// the one that the run was started with.
    pub(super) fn of(
        recipe: &Recipe,
        folder: &Path,
        checkpoints: &Checkpoints,
        watcher: &mut dyn Watcher,
    ) -> Result<StartingPoint> {
        let Some(path) = &recipe.model.init_from else { return Ok(StartingPoint::Scratch) };
        let pretrained = Pretrained::open(path, recipe.data.task);
        let recorded_checksum = recipe.model.init_checksum.as_deref();
        let is_different = |pretrained: &Pretrained| {
            recorded_checksum.is_some_and(|checksum| checksum != pretrained.checksum())
        };
        if checkpoints.steps()?.is_empty() {
            let pretrained = pretrained?;
            return match is_different(&pretrained) {
                false => Ok(StartingPoint::Pretrained(Box::new(pretrained))),
                true => Err(Error::new(format!(
                    "{} is not the model that the run in {} was started with: restore that model, or start a new run",
                    path.display(),
                    folder.display()
                ))),
            };
        }
        if pretrained.is_ok_and(|pretrained| is_different(&pretrained)) {
            watcher.observe(&Event::Warning(&format!(
                "{} is not the model that the run was started with: the run resumes from its checkpoint, but cannot be \
                 started again",
                path.display()
            )));
        }
        Ok(StartingPoint::Checkpoint(ModelFolder::open(folder)?.config.special_tokens()))
    }

    /// The special tokens of the pretrained model's vocabulary.
    pub(super) fn special_tokens(&self) -> Option<SpecialTokens> {
        match self {
            StartingPoint::Scratch => None,
            StartingPoint::Pretrained(pretrained) => Some(pretrained.special_tokens()),
            StartingPoint::Checkpoint(special) => Some(special.clone()),
        }
    }
}
