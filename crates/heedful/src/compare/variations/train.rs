//! Trains or resumes a variation, or reads the result of a finished one.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::lengths::by_length;
use super::{LengthAccuracy, Variation, VariationGroup, differences_or_length};
use crate::metrics::Measure;
use crate::models::DeviceChoice;
use crate::recipe::{Author, Key, Overrides, Recipe};
use crate::store::durable;
use crate::tasks;
use crate::train::log::{Record, read_metrics, series};
use crate::train::run::{self, Diverged, Ending, Event, Start, Watcher};
use crate::{Error, Result};

/// The result of a variation after its training has ended.
#[derive(Clone, Debug)]
pub struct VariationResult {
    /// Its group; `None` for the base.
    pub group: Option<VariationGroup>,
    /// Its name.
    pub name: String,
    /// The name of its run's folder.
    pub run: String,
    /// Its seed.
    pub seed: u64,
    /// The differences from the base.
    pub changes: String,
    /// The number of parameters.
    pub parameters: usize,
    /// The number of updates.
    pub step: u64,
    /// Training time in seconds, over all sessions.
    pub seconds: f64,
    /// Why training ended.
    pub ending: String,
    /// The best validation by the recipe's `best_by`; `None` if the run diverged before a validation.
    pub best: Option<Record>,
    /// All validations.
    pub validations: Vec<Record>,
    /// A classifier's accuracy by text length; empty for other tasks.
    pub by_length: Vec<LengthAccuracy>,
}

/// `outcome.json`: the data that the run's other files do not contain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Outcome {
    /// The limits of the run; if they change, the run is resumed.
    budget: String,
    parameters: usize,
    step: u64,
    seconds: f64,
    ending: String,
    best_step: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    by_length: Vec<LengthAccuracy>,
}

/// Trains a variation to its end; `None` if the watcher stopped it earlier.
pub fn train(
    device: DeviceChoice,
    variation: &Variation,
    watcher: &mut dyn Watcher,
) -> Result<Option<VariationResult>> {
    if let Some(entry) = finished(variation)? {
        return Ok(Some(entry));
    }
    let failed = |error: Error| Error::new(format!("{}: {error}", variation.run()));
    let recipe = &variation.recipe;
    let start = if run::is_run(&folder(variation)) { Start::Resume } else { Start::Fresh };
    let mut watcher = RecordingWatcher { watcher, parameters: 0, step: 0, seconds: 0.0 };
    let outcome = run::train_on(device, recipe, start, &mut watcher);
    let RecordingWatcher { parameters, step, seconds, .. } = watcher;
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
            by_length: by_length(variation).map_err(failed)?,
        },
        // Divergence is a result too, so the other variations are still trained.
        Err(error) if error.cause::<Diverged>().is_some() => Outcome {
            budget,
            parameters,
            step,
            seconds,
            ending: error.to_string(),
            best_step: None,
            by_length: Vec::new(),
        },
        Err(error) => return Err(failed(error)),
    };
    let json = serde_json::to_string_pretty(&outcome).expect("numbers and texts are JSON");
    durable::write_bytes(&path(variation), json.as_bytes()).map_err(|error| failed(error.into()))?;
    entry(variation, outcome).map(Some)
}

/// The result of a variation that was trained to its end; `None` if it has not been.
pub fn finished(variation: &Variation) -> Result<Option<VariationResult>> {
    check_recipe(variation)?;
    let path = path(variation);
    let unreadable = |reason: String| {
        Error::new(format!(
            "{} does not describe how the run ended ({reason}): remove the file to have it written again",
            path.display()
        ))
    };
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

/// Checks that the run in the folder was trained with the same recipe.
fn check_recipe(variation: &Variation) -> Result<()> {
    let folder = folder(variation);
    if !run::is_run(&folder) {
        return Ok(());
    }
    let mut overrides = Overrides::new();
    overrides.written_by(Author::Program);
    overrides.file(&folder.join("recipe.toml"))?;
    let existing = tasks::resolve(overrides)?;
    if existing.fingerprint() == variation.recipe.fingerprint() {
        return Ok(());
    }
    let differences = differences_or_length(&variation.recipe, &existing);
    Err(Error::new(format!(
        "{} was trained with other settings ({differences}): choose another --out, or remove that folder",
        folder.display()
    )))
}

fn entry(variation: &Variation, outcome: Outcome) -> Result<VariationResult> {
    let failed = |error| Error::new(format!("{}: {error}", variation.run()));
    let records = read_metrics(&folder(variation).join("metrics.jsonl")).map_err(failed)?;
    let validations: Vec<Record> =
        records.into_iter().filter(|record| record.value(Measure::ValidLoss).is_some()).collect();
    let is_best = |record: &&Record| Some(record.step) == outcome.best_step;
    Ok(VariationResult {
        group: variation.group,
        name: variation.name.clone(),
        run: variation.run(),
        seed: variation.recipe.training.seed,
        changes: variation.changes.clone(),
        parameters: outcome.parameters,
        step: outcome.step,
        seconds: outcome.seconds,
        ending: outcome.ending,
        best: validations.iter().rfind(is_best).cloned(),
        validations,
        by_length: outcome.by_length,
    })
}

impl VariationResult {
    /// A value of the best validation.
    pub fn value(&self, measure: Measure) -> Option<f64> {
        self.best.as_ref()?.value(measure)
    }

    /// The values of a measure over the validations.
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

/// A watcher that forwards events and records what training's own outcome does not always contain.
struct RecordingWatcher<'a> {
    watcher: &'a mut dyn Watcher,
    parameters: usize,
    step: u64,
    seconds: f64,
}

impl Watcher for RecordingWatcher<'_> {
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
