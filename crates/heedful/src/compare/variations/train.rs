//! One variation: trained, taken up again, or found finished.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Group, Variation, VariationError, differences};
use crate::metrics::Measure;
use crate::recipe::{Key, Overrides, Recipe};
use crate::store::durable;
use crate::tasks;
use crate::train::log::{Record, read_metrics, series};
use crate::train::run::{self, Ending, Event, RunError, Start, Watcher};

/// A variation that was trained to its end.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Of which group; none for the base.
    pub group: Option<Group>,
    /// Its name.
    pub name: String,
    /// What differs from the base.
    pub changes: String,
    /// Numbers in the model.
    pub parameters: usize,
    /// Updates.
    pub step: u64,
    /// Seconds of training, over all sittings.
    pub seconds: f64,
    /// Why it ended.
    pub ending: String,
    /// The best validation by the recipe's `best_by`; none if the run diverged before one.
    pub best: Option<Record>,
    /// All validations.
    pub validations: Vec<Record>,
}

/// `outcome.json`: what the run's other files do not say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Outcome {
    /// What would end the run; with another budget it goes on.
    budget: String,
    parameters: usize,
    step: u64,
    seconds: f64,
    ending: String,
    best_step: Option<u64>,
}

/// Trains a variation to its end; none if the watcher wanted an end before.
pub fn train(variation: &Variation, watcher: &mut dyn Watcher) -> Result<Option<Entry>, VariationError> {
    if let Some(entry) = finished(variation)? {
        return Ok(Some(entry));
    }
    let failed = |source| VariationError::Run { name: variation.name.clone(), source: Box::new(source) };
    let recipe = &variation.recipe;
    let start = if run::is_run(&folder(variation)) { Start::Resume } else { Start::Fresh };
    let mut watcher = Counting { watcher, parameters: 0, step: 0, seconds: 0.0 };
    let outcome = run::train(recipe, start, &mut watcher);
    let Counting { parameters, step, seconds, .. } = watcher;
    let budget = budget(recipe);
    let outcome = match outcome {
        Ok(outcome) if outcome.ending == Ending::Interrupted => return Ok(None),
        Ok(outcome) => Outcome {
            budget,
            parameters,
            step: outcome.step,
            seconds: outcome.seconds,
            ending: outcome.ending.to_string(),
            best_step: outcome.best.map(|(_, step)| step),
        },
        // That is a result, too: the others are not to be kept waiting for it.
        Err(error @ RunError::Diverged { .. }) => {
            Outcome { budget, parameters, step, seconds, ending: error.to_string(), best_step: None }
        }
        Err(error) => return Err(failed(error)),
    };
    let json = serde_json::to_string_pretty(&outcome).expect("numbers and texts are JSON");
    durable::write_bytes(&path(variation), json.as_bytes()).map_err(|error| failed(error.into()))?;
    entry(variation, outcome).map(Some)
}

/// What a variation that was trained to its end has left; none if it was not.
pub fn finished(variation: &Variation) -> Result<Option<Entry>, VariationError> {
    check_recipe(variation)?;
    let path = path(variation);
    let unreadable = |reason: String| VariationError::Outcome { path: path.clone(), reason };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error.to_string())),
    };
    let outcome: Outcome = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
    if outcome.budget != budget(&variation.recipe) {
        return Ok(None);
    }
    entry(variation, outcome).map(Some)
}

/// What is in the folder was trained with the same recipe.
fn check_recipe(variation: &Variation) -> Result<(), VariationError> {
    let folder = folder(variation);
    if !run::is_run(&folder) {
        return Ok(());
    }
    let mut overrides = Overrides::new();
    overrides.file(&folder.join("recipe.toml"))?;
    let there = tasks::resolve(overrides)?;
    if there.fingerprint() == variation.recipe.fingerprint() {
        return Ok(());
    }
    Err(VariationError::OtherRecipe { folder, differences: differences(&variation.recipe, &there) })
}

fn entry(variation: &Variation, outcome: Outcome) -> Result<Entry, VariationError> {
    let failed =
        |error| VariationError::Run { name: variation.name.clone(), source: Box::new(RunError::Log(error)) };
    let records = read_metrics(&folder(variation).join("metrics.jsonl")).map_err(failed)?;
    let validations: Vec<Record> =
        records.into_iter().filter(|record| record.value(Measure::ValidLoss).is_some()).collect();
    let is_best = |record: &&Record| Some(record.step) == outcome.best_step;
    Ok(Entry {
        group: variation.group,
        name: variation.name.clone(),
        changes: variation.changes.clone(),
        parameters: outcome.parameters,
        step: outcome.step,
        seconds: outcome.seconds,
        ending: outcome.ending,
        best: validations.iter().rfind(is_best).cloned(),
        validations,
    })
}

impl Entry {
    /// A number of the best validation.
    pub fn value(&self, measure: Measure) -> Option<f64> {
        self.best.as_ref()?.value(measure)
    }

    /// The course of a number over the validations.
    pub fn curve(&self, measure: Measure) -> Vec<(f64, f64)> {
        series(&self.validations, measure)
    }
}

fn folder(variation: &Variation) -> PathBuf {
    variation.recipe.output.out.clone().expect("a plan gives every variation its folder")
}

fn path(variation: &Variation) -> PathBuf {
    folder(variation).join("outcome.json")
}

fn budget(recipe: &Recipe) -> String {
    let is_limit = |key: &&Key| {
        ["training.steps", "training.time", "validation.patience"].contains(&key.path().as_str())
    };
    let limits = Recipe::keys().filter(is_limit);
    limits.map(|key| format!("{} = {}", key.path(), key.value(recipe))).collect::<Vec<_>>().join(", ")
}

/// Hands on what it sees, and remembers what an outcome does not say.
struct Counting<'a> {
    watcher: &'a mut dyn Watcher,
    parameters: usize,
    step: u64,
    seconds: f64,
}

impl Watcher for Counting<'_> {
    fn observe(&mut self, event: &Event<'_>) {
        match event {
            Event::Ready(ready) => (self.parameters, self.step) = (ready.parameters, ready.step),
            Event::Step(pace) => (self.step, self.seconds) = (pace.step, pace.seconds),
            _ => {}
        }
        self.watcher.observe(event);
    }

    fn should_stop(&self) -> bool {
        self.watcher.should_stop()
    }
}
