//! What a run starts from: nothing, another model, or its own checkpoint.

use std::path::Path;

use super::{Event, Watcher};
use crate::data::SpecialTokens;
use crate::recipe::Recipe;
use crate::tasks::folder::ModelFolder;
use crate::tasks::pretrained::Pretrained;
use crate::train::checkpoint::Checkpoints;
use crate::{Error, Result};

/// What a run starts from.
pub(super) enum Started {
    /// Random weights.
    FromNothing,
    /// The model of `model.init_from`.
    From(Box<Pretrained>),
    /// A checkpoint: with its folder it has all that was taken from another model, which may be gone.
    Before(SpecialTokens),
}

impl Started {
    /// Opens the model that a run without a checkpoint starts from. It must be the one that the run was begun
    /// with.
    pub(super) fn of(
        recipe: &Recipe,
        folder: &Path,
        checkpoints: &Checkpoints,
        watcher: &mut dyn Watcher,
    ) -> Result<Started> {
        let Some(path) = &recipe.model.init_from else { return Ok(Started::FromNothing) };
        let pretrained = Pretrained::open(path, recipe.data.task);
        let begun_with = recipe.model.init_checksum.as_deref();
        let is_another =
            |pretrained: &Pretrained| begun_with.is_some_and(|begun| begun != pretrained.checksum());
        if checkpoints.steps()?.is_empty() {
            let pretrained = pretrained?;
            return match is_another(&pretrained) {
                false => Ok(Started::From(Box::new(pretrained))),
                true => Err(Error::new(format!(
                    "{} has another model than the one that the run in {} was begun with: bring that one back, or start a new run",
                    path.display(),
                    folder.display()
                ))),
            };
        }
        if pretrained.is_ok_and(|pretrained| is_another(&pretrained)) {
            watcher.observe(&Event::Warning(&format!(
                "{} has another model than the one that the run started from: the run goes on from its checkpoint, and cannot \
                 be begun again",
                path.display()
            )));
        }
        Ok(Started::Before(ModelFolder::open(folder)?.config.special_tokens()))
    }

    /// The special tokens that come with another model's vocabulary.
    pub(super) fn special_tokens(&self) -> Option<SpecialTokens> {
        match self {
            Started::FromNothing => None,
            Started::From(pretrained) => Some(pretrained.special_tokens()),
            Started::Before(special) => Some(special.clone()),
        }
    }
}
