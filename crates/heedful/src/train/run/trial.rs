//! Measures the duration of steps and validations before a run with a time limit only. The trial steps are
//! discarded.

use std::sync::Arc;

use super::clock::Timing;
use super::error::unreachable_ranks;
use super::prepare::{Prepared, batch_options};
use super::{Event, Watcher};
use crate::Result;
use crate::data::batch::{Batch, BatchLayout};
use crate::data::batches::{BatchPosition, Batches, Prefetched};
use crate::data::encoded::EncodedCorpus;
use crate::recipe::{Recipe, Task};
use crate::train::time_plan::Costs;
use crate::train::{StepTrainer, TimePlan};

/// Minimum and maximum number of measured steps, after one warmup step (first allocations, cold caches).
const MIN_STEPS: u32 = 3;
const MAX_STEPS: u32 = 50;
/// The share of the time limit used for measurements, and its bounds in seconds.
const SHARE: f64 = 0.01;
const MIN_SECONDS: f64 = 0.5;
const MAX_SECONDS: f64 = 10.0;
/// Number of pairs to translate to estimate the duration of a validation.
const PAIRS: usize = 16;

/// The plan for the time limit of a recipe; `None` if the trial steps fail: the run itself will report why.
/// The trainer is restored.
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
    let Prepared { corpus, layout, .. } = prepared;
    let step =
        Trial { recipe, corpus, layout: *layout, trainer, timing }.step_seconds(duration(limit), watcher)?;
    trainer.restore(&untrained).expect("these were its weights a moment ago");
    Ok(step.map(|step| TimePlan::new(recipe, Costs { step, validation }, limit - timing.elapsed())))
}

/// The text and the trainer of trial steps.
pub(super) struct Trial<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) corpus: &'a Arc<EncodedCorpus>,
    pub(super) layout: BatchLayout,
    pub(super) trainer: &'a mut StepTrainer,
    pub(super) timing: &'a Timing<'a>,
}

impl Trial<'_> {
    /// Measures the seconds per update, in at least `min_duration` seconds. `None` if a step fails.
    pub(super) fn step_seconds(
        &mut self,
        min_duration: f64,
        watcher: &mut dyn Watcher,
    ) -> Result<Option<f64>> {
        let options = batch_options(self.recipe, self.layout, self.trainer.model().special_tokens());
        let mut stream =
            Prefetched::new(Batches::at(Arc::clone(self.corpus), &options, BatchPosition::default())?);
        let mut update = || -> Result<bool> {
            let mut batches: Vec<Batch> = Vec::new();
            for _ in 0..self.recipe.training.accumulate {
                batches.push(stream.next().expect("the stream of batches is infinite")?.batch);
            }
            Ok(self.trainer.submit(&batches).is_ok() && self.trainer.drain().is_ok())
        };
        if !update()? {
            return Ok(None);
        }
        let began = self.timing.elapsed();
        for steps in 1..=MAX_STEPS {
            if !update()? {
                return Ok(None);
            }
            watcher.observe(&Event::Measuring { steps });
            let seconds = self.timing.elapsed() - began;
            if steps == MAX_STEPS || watcher.should_stop() || (steps >= MIN_STEPS && seconds >= min_duration)
            {
                return Ok(Some((seconds / f64::from(steps)).max(1e-6)));
            }
        }
        unreachable!("the last step returns")
    }
}

/// The tokens of a text, on the longer side.
pub(super) fn text_tokens(corpus: &EncodedCorpus) -> f64 {
    let report = corpus.report();
    report.source_tokens.max(report.target_tokens + report.kept) as f64
}

/// The seconds to measure steps for.
pub(super) fn duration(limit: f64) -> f64 {
    (SHARE * limit).clamp(MIN_SECONDS, MAX_SECONDS)
}

/// An upper estimate of the seconds per validation: an untrained model translates up to the maximum length.
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
    let mut reduced = recipe.clone();
    reduced.validation.bleu = false;
    let without = seconds(&reduced)?;
    let counted = recipe.validation.bleu_pairs.unwrap_or(usize::MAX).min(set.len());
    if !recipe.validation.bleu || recipe.data.task != Task::Translate {
        return Ok(without);
    }
    reduced.validation.bleu = true;
    reduced.validation.bleu_pairs = Some(PAIRS.min(counted));
    let with = seconds(&reduced)?;
    Ok(without + (with - without).max(0.0) * (counted as f64 / PAIRS.min(counted).max(1) as f64))
}
