//! Chooses the size and the training of a run for its text, time and machine ([`fit`]): measures some steps of
//! each size that suits the text, from the largest to the first that the time suffices for.

use std::sync::Arc;

use heedful_tensor::Device;

use super::clock::Timing;
use super::prepare::{self, Text};
use super::trial::{self, Trial};
use super::{Event, Watcher};
use crate::Result;
use crate::models::Model;
use crate::recipe::Recipe;
use crate::train::StepTrainer;
use crate::train::fit::{Budget, Size};

/// The tokens of a batch that is measured.
const BATCH_TOKENS: usize = 1024;
/// The share of the time that steps get: the others are validations and the end of the run.
const TRAINING_SHARE: f64 = 0.9;

/// Sets the automatic keys of a recipe. They keep their defaults if the trial steps fail: the run itself will
/// report why.
pub(super) fn choose(
    recipe: &mut Recipe,
    text: &Text,
    device: Device,
    timing: &Timing<'_>,
    watcher: &mut dyn Watcher,
) -> Result<()> {
    let Some(limit) = recipe.training.time.map(|time| time.as_secs_f64()) else { return Ok(()) };
    let tokens = trial::text_tokens(&text.corpus);
    let sizes: Vec<Size> = match recipe.is_automatic("model.d_model") {
        true => Size::for_text(tokens),
        false => Vec::new(),
    };
    let mut candidates = sizes.into_iter().peekable();
    let (chosen, trained) = loop {
        let size = candidates.next();
        let mut candidate = recipe.clone();
        if let Some(size) = size {
            size.set(&mut candidate);
        }
        let Some(speed) = tokens_per_second(&candidate, text, device, timing, watcher)? else {
            return Ok(());
        };
        let trained = speed * TRAINING_SHARE * (limit - timing.elapsed()).max(0.0);
        if candidates.peek().is_none() || size.is_none_or(|size| size.suits_training(trained)) {
            break (candidate, trained);
        }
    };
    recipe.model = chosen.model;
    let choices = Budget { text: tokens, trained }.choose(recipe);
    watcher.observe(&Event::Chosen(&choices));
    Ok(())
}

/// The tokens that a model is trained on per second, on the longer side.
fn tokens_per_second(
    recipe: &Recipe,
    text: &Text,
    device: Device,
    timing: &Timing<'_>,
    watcher: &mut dyn Watcher,
) -> Result<Option<f64>> {
    let mut recipe = recipe.clone();
    if recipe.is_automatic("training.batch_tokens") {
        recipe.training.batch_tokens = BATCH_TOKENS;
    }
    let model: Arc<dyn Model> =
        Arc::from(recipe.model_config(prepare::sizes(&text.tokenizers), 2)?.build(recipe.training.seed)?);
    if model.params().move_to(device).is_err() {
        return Ok(None);
    }
    let mut trainer = StepTrainer::new(model, recipe.trainer_options());
    let limit = recipe.training.time.map_or(0.0, |time| time.as_secs_f64());
    let (corpus, layout) = (&text.corpus, text.layout);
    let step = Trial { recipe: &recipe, corpus, layout, trainer: &mut trainer, timing }
        .step_seconds(trial::duration(limit) / 2.0, watcher)?;
    let tokens = (recipe.training.batch_tokens * recipe.training.accumulate) as f64;
    Ok(step.map(|seconds| tokens / seconds))
}
