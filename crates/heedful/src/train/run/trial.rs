//! Measures what steps and validations cost, before a run that has only a time begins. The steps are thrown away.

use std::sync::Arc;

use super::clock::Timing;
use super::error::unreachable_ranks;
use super::prepare::Prepared;
use super::session::batch_options;
use super::{Event, Watcher};
use crate::Result;
use crate::data::batch::Batch;
use crate::data::batches::{BatchPosition, Batches, Prefetched};
use crate::recipe::{Recipe, Task};
use crate::train::time_plan::Costs;
use crate::train::{StepTrainer, TimePlan};

/// A run needs this many steps of its own at least, after a first one that is not measured: memory is taken and code is read
/// for the first time there.
const FEWEST: u32 = 3;
const MOST: u32 = 50;
/// Part of the time that is measured, and its bounds in seconds.
const SHARE: f64 = 0.01;
const SHORTEST: f64 = 0.5;
const LONGEST: f64 = 10.0;
/// Pairs that are translated to estimate what a validation takes.
const PAIRS: usize = 16;

/// The plan that fits into the time of a recipe. `None` if not even a few steps can be made: the run itself will say why. The
/// trainer's model is as it was.
pub(super) fn plan(
    recipe: &Recipe,
    prepared: &Prepared,
    trainer: &mut StepTrainer,
    timing: &Timing<'_>,
    watcher: &mut dyn Watcher,
) -> Result<Option<TimePlan>> {
    let Some(limit) = recipe.training.time.map(|time| time.as_secs_f64()) else { return Ok(None) };
    watcher.observe(&Event::Measuring { steps: 0 });
    let validation = validation_seconds(recipe, prepared, timing, watcher)?;
    let untrained = trainer.gathered_state().map_err(unreachable_ranks)?.expect("a run is the leader's");
    let step =
        step_seconds(recipe, prepared, trainer, (SHARE * limit).clamp(SHORTEST, LONGEST), timing, watcher)?;
    trainer.restore(&untrained).expect("these were its weights a moment ago");
    Ok(step.map(|step| TimePlan::new(recipe, Costs { step, validation }, limit - timing.elapsed())))
}

/// Seconds of an update.
fn step_seconds(
    recipe: &Recipe,
    prepared: &Prepared,
    trainer: &mut StepTrainer,
    enough: f64,
    timing: &Timing<'_>,
    watcher: &mut dyn Watcher,
) -> Result<Option<f64>> {
    let options = batch_options(recipe, prepared.layout, prepared.model.special_tokens());
    let corpus = Arc::clone(&prepared.corpus);
    let mut stream = Prefetched::new(Batches::at(corpus, &options, BatchPosition::default())?);
    let mut update = |trainer: &mut StepTrainer| -> Result<bool> {
        let mut batches: Vec<Batch> = Vec::new();
        for _ in 0..recipe.training.accumulate {
            batches.push(stream.next().expect("the stream of batches ends by an error only")?.batch);
        }
        Ok(trainer.submit(&batches).is_ok() && trainer.drain().is_ok())
    };
    if !update(trainer)? {
        return Ok(None);
    }
    let began = timing.elapsed();
    for steps in 1..=MOST {
        if !update(trainer)? {
            return Ok(None);
        }
        watcher.observe(&Event::Measuring { steps });
        let seconds = timing.elapsed() - began;
        if steps == MOST || watcher.should_stop() || (steps >= FEWEST && seconds >= enough) {
            return Ok(Some((seconds / f64::from(steps)).max(1e-6)));
        }
    }
    unreachable!("the last step returns")
}

/// Seconds of a validation, from above: a model that has learned nothing translates until the longest length.
fn validation_seconds(
    recipe: &Recipe,
    prepared: &Prepared,
    timing: &Timing<'_>,
    watcher: &mut dyn Watcher,
) -> Result<f64> {
    let Some(set) = &prepared.validation else { return Ok(0.0) };
    let mut seconds = |recipe: &Recipe| {
        let validated = timing.measure(|| {
            watcher.observe(&Event::Measuring { steps: 0 });
            set.validate(recipe).map(drop)
        });
        validated.0.map(|()| validated.1)
    };
    let mut few = recipe.clone();
    few.validation.bleu = false;
    let without = seconds(&few)?;
    let counted = recipe.validation.bleu_pairs.unwrap_or(usize::MAX).min(set.len());
    if !recipe.validation.bleu || recipe.data.task != Task::Translate {
        return Ok(without);
    }
    few.validation.bleu = true;
    few.validation.bleu_pairs = Some(PAIRS.min(counted));
    let with = seconds(&few)?;
    Ok(without + (with - without).max(0.0) * (counted as f64 / PAIRS.min(counted).max(1) as f64))
}
