//! A training run: from a recipe to a model's folder.
//!
//! ```text
//! RUN/recipe.toml             every key of the recipe
//! RUN/config.json             ┐
//! RUN/model.safetensors       ├ the best model so far: the folder of a run is a model folder
//! RUN/tokenizer.json          ┘
//! RUN/corpus.bin              the tokenized training text
//! RUN/checkpoints/            the states from which a stopped run resumes
//! RUN/metrics.jsonl  attention.jsonl  events.out.tfevents.…  report.html
//! ```
//! All state that determines the weights (data order, dropout, Adam, the moving average) is a function of the
//! recipe and the step, or is in the checkpoint. So a run that was killed at any moment and resumed ends with
//! bit-identical weights to an uninterrupted run.

mod device;
mod error;
mod watcher;

mod clock;
mod frozen;
mod memory;
mod starting_point;

mod prepare;

mod space;

mod journal;
mod meter;
mod page;

mod conclude;
mod cooldown;
mod resume;
mod review;
mod session;
mod validated;
mod write_failures;

mod trial;

mod choose;

mod follow;
mod trainer;

pub use clock::Clock;
pub(crate) use clock::SystemClock;
pub use error::not_a_run;
pub(crate) use error::{Diverged, no_folder};
pub use follow::follow;
pub(crate) use page::{environment, settings};
pub use prepare::is_run;
pub(crate) use prepare::with_absolute_paths;
pub use review::report;
pub use trainer::Trainer;
pub use watcher::{Ending, Event, FinalModel, Outcome, Pace, Ready, Watcher};

use self::clock::Timing;
use self::error::{large_for_gpu, unreachable_ranks};
use crate::models::{ChosenDevice, DeviceChoice};
use crate::recipe::Recipe;
use crate::system::is_same_file;
use crate::tasks::pretrained::Pretrained;
use crate::train::team::Team;
use crate::train::{JoinError, StepTrainer};
use crate::{Error, Result};

/// Whether a run is new or resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// In a folder without a run or a model.
    Fresh,
    /// In a folder whose model and run files may be replaced, but not its checkpoints.
    Replace,
    /// From the newest intact checkpoint in the folder, or from scratch if there is none.
    Resume,
}

/// Trains with the recipe, in its output folder, until the limits of the recipe are reached or the watcher
/// stops the run.
pub fn train(recipe: &Recipe, start: Start, watcher: &mut dyn Watcher) -> Result<Outcome> {
    train_on(DeviceChoice::Cpu, recipe, start, watcher)
}

/// As [`train`], on another device. Checkpoints can be resumed on any device.
pub fn train_on(
    device: DeviceChoice,
    recipe: &Recipe,
    start: Start,
    watcher: &mut dyn Watcher,
) -> Result<Outcome> {
    train_by(&SystemClock::default(), device, recipe, start, watcher)
}

/// As [`train_on`], on the leader of a team; the other ranks call `follow`. The weights are bit-identical for
/// any number of ranks.
pub fn train_with(
    team: &Team,
    device: DeviceChoice,
    recipe: &Recipe,
    start: Start,
    watcher: &mut dyn Watcher,
) -> Result<Outcome> {
    run(&SystemClock::default(), device, Some(team), recipe, start, watcher)
}

/// As [`train_on`], with another clock for the time limit of the recipe.
pub fn train_by(
    clock: &dyn Clock,
    device: DeviceChoice,
    recipe: &Recipe,
    start: Start,
    watcher: &mut dyn Watcher,
) -> Result<Outcome> {
    run(clock, device, None, recipe, start, watcher)
}

fn run(
    clock: &dyn Clock,
    device: DeviceChoice,
    team: Option<&Team>,
    recipe: &Recipe,
    start: Start,
    watcher: &mut dyn Watcher,
) -> Result<Outcome> {
    team.map_or(Ok(()), |team| team.check(recipe.training.accumulate))?;
    let timing = Timing::begin(clock);
    let mut recipe = recipe.clone();
    // The recipe of a resumed run already has the architecture of the pretrained model.
    if start != Start::Resume
        && let Some(folder) = &recipe.model.init_from
    {
        if recipe.output.out.as_ref().is_some_and(|out| is_same_file(out, folder)) {
            let folder = folder.display();
            return Err(Error::new(format!(
                "the run would replace the model in {folder} that it starts from: choose another folder (--out)"
            )));
        }
        let pretrained = Pretrained::open(folder, recipe.data.task)?;
        // Reports errors in the added tokens before anything is written.
        pretrained.tokenizers(recipe.vocabulary.add_tokens.as_deref())?;
        pretrained.inherit_architecture(&mut recipe);
    }
    let ChosenDevice { device, why_not_gpu } = device.for_training()?;
    if let Some(why) = &why_not_gpu {
        watcher.observe(&Event::NotOnGpu { why });
    }
    if !recipe.has_only_time_limit() {
        // The automatic keys are chosen; they are written to the folder's recipe as explicit values.
        recipe.automatic.clear();
    }
    if team.is_some() || device.has_own_memory() {
        // Nothing was measured there.
        recipe.automatic.retain(|path| !Recipe::FITTED_KEYS.contains(path));
    }
    let text = prepare::text(&recipe, start, watcher)?;
    if recipe.is_fitted() && text.checkpoints.steps()?.is_empty() {
        choose::choose(&mut recipe, &text, device, &timing, watcher)?;
    }
    let prepared = prepare::model(&recipe, text)?;
    let trainer = |recipe: &Recipe| -> Result<StepTrainer> {
        let model = prepared.model.clone();
        let build = || -> Result<StepTrainer, JoinError> {
            if let Some(team) = team {
                return StepTrainer::leading(team, device, model, &prepared.folder.config, recipe);
            }
            model.params().move_to(device)?;
            Ok(StepTrainer::new(model, recipe.trainer_options()))
        };
        let built = device.catch_oom(build).map_err(JoinError::from).flatten();
        built.map_err(|error| match error {
            JoinError::Ranks(failure) => unreachable_ranks(failure),
            JoinError::OutOfMemory(full) => large_for_gpu(full),
        })
    };
    let mut plan = None;
    if recipe.has_only_time_limit() && prepared.checkpoints.steps()?.is_empty() {
        plan = trial::plan(&recipe, &prepared, &mut trainer(&recipe)?, &timing, watcher)?;
        if let Some(plan) = &mut plan {
            // The schedule of the other ranks cannot change.
            plan.is_last |= team.is_some() && recipe.training.schedule.has_end();
            plan.apply(&mut recipe);
            prepare::write_recipe(&recipe, &prepared.folder.path)?;
        }
    }
    let steps = recipe.training.steps.or(plan.as_ref().map(|plan| plan.steps));
    if let Some(warning) = steps.and_then(|steps| recipe.unfinished_warmup_warning(steps)) {
        watcher.observe(&Event::Warning(&warning));
    }
    let trainer = trainer(&recipe)?;
    space::check(&recipe, &prepared)?;
    session::Session::begin(recipe, prepared, trainer, timing, plan, watcher)?.run()
}
