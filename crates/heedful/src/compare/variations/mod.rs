//! Table 3 of the paper in one command: a base recipe and variations that differ from it in one
//! hyperparameter, each trained like `heedful train` in its own folder.
//!
//! ```text
//! FOLDER/base  FOLDER/heads-1  FOLDER/dropout-0.2 …     runs, each with an outcome.json when it has ended
//! FOLDER/base-seed-2  FOLDER/heads-1-seed-2 …           the same runs with other seeds, if requested
//! FOLDER/compare.md  compare.csv  report.html           the results so far
//! ```
//!
//! Finished runs are not repeated; interrupted runs are resumed.

mod change;
mod lengths;
mod page;
mod train;

pub use change::VariationGroup;
pub use lengths::LengthAccuracy;
pub use page::files;
pub use train::{VariationResult, finished, train};

use std::path::Path;

use crate::recipe::{Author, Key, Literal, Overrides, Recipe, RecipeError};
use crate::tasks;
use crate::tasks::ModelConfig;
use crate::train::run::{no_folder, with_absolute_paths};
use crate::{Error, Result};

/// The variations to train.
#[derive(Clone, Debug)]
pub struct VariationPlan {
    /// The runs, the base first. With several seeds, the runs of a variation are adjacent.
    pub variations: Vec<Variation>,
    /// The number of seeds per variation.
    pub seeds: usize,
    /// Variations that cannot be built, or equal the base.
    pub skipped: Vec<SkippedVariation>,
}

/// One training run of a comparison.
#[derive(Clone, Debug)]
pub struct Variation {
    /// Its group; `None` for the base.
    pub group: Option<VariationGroup>,
    /// Its name: `heads-2`. With the first seed it is also the name of its folder.
    pub name: String,
    /// The differences from the base: `heads = 2`.
    pub changes: String,
    /// The whole recipe.
    pub recipe: Recipe,
}

/// A variation that is not trained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedVariation {
    /// Its name.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// Plans the base and the variations of the given groups, in folders inside the base recipe's folder.
pub fn plan(base: &Recipe, groups: &[VariationGroup]) -> Result<VariationPlan> {
    let folder = base.output.out.clone().ok_or_else(no_folder)?;
    check(base)?;
    // Absolute, like the paths in the recipes of the runs' folders, which it is compared with.
    let mut base = with_absolute_paths(base);
    if base.has_only_time_limit() {
        // All variations use the schedule of the preset; the time limit only ends them.
        base.training.steps = Recipe::preset(base.model.preset).training.steps;
    }
    base.automatic.clear();
    let folder = base.output.out.clone().unwrap_or(folder);
    let mut plan = VariationPlan { variations: Vec::new(), seeds: 1, skipped: Vec::new() };
    plan.variations.push(Variation {
        group: None,
        name: "base".to_owned(),
        changes: String::new(),
        recipe: in_folder(&base, &folder, "base"),
    });
    for &group in groups {
        for change in group.changes(&base) {
            let varied = varied(&base, &change.sets).and_then(|recipe| match plan.duplicate_of(&recipe) {
                Some(other) => Err(format!("it is the same model as {other}")),
                None => Ok(recipe),
            });
            match varied {
                Ok(recipe) => plan.variations.push(Variation {
                    group: Some(group),
                    changes: differences(&base, &recipe),
                    recipe: in_folder(&recipe, &folder, &change.name),
                    name: change.name,
                }),
                Err(reason) => plan.skipped.push(SkippedVariation { name: change.name, reason }),
            }
        }
    }
    Ok(plan)
}

impl Variation {
    /// The name of its run's folder.
    pub fn run(&self) -> String {
        let folder = self.recipe.output.out.as_ref().and_then(|folder| folder.file_name());
        folder.map_or_else(|| self.name.clone(), |name| name.to_string_lossy().into_owned())
    }
}

impl VariationPlan {
    /// The same variations, each with this many consecutive seeds, starting at the recipe's.
    pub fn with_seeds(&self, seeds: usize) -> VariationPlan {
        let with_seed = |variation: &Variation, number: usize| {
            let mut variation = variation.clone();
            let Recipe { training, output, .. } = &mut variation.recipe;
            if let Some(folder) = output.out.as_ref().filter(|_| number > 0) {
                training.seed += number as u64;
                output.out =
                    Some(folder.with_file_name(format!("{}-seed-{}", variation.name, training.seed)));
            }
            variation
        };
        let runs = self.variations.iter().flat_map(|variation| {
            (0..seeds).map(move |number| with_seed(variation, number)).collect::<Vec<_>>()
        });
        VariationPlan { variations: runs.collect(), seeds, skipped: self.skipped.clone() }
    }

    /// The planned variation whose weights would equal those of this recipe, if there is one.
    fn duplicate_of(&self, recipe: &Recipe) -> Option<&str> {
        let is_same = |other: &&Variation| {
            model_config(&other.recipe) == model_config(recipe)
                && differences(&other.recipe, recipe).is_empty()
        };
        self.variations.iter().skip(1).find(is_same).map(|other| other.name.as_str())
    }
}

/// The base with some keys set, or the reason why it is skipped.
fn varied(base: &Recipe, sets: &[String]) -> Result<Recipe, String> {
    let attempt = || {
        let mut overrides = Overrides::new();
        // The changes are generated for all families, so some keys may not apply to this one.
        overrides.written_by(Author::Program);
        overrides.text(&base.to_toml(), Path::new("recipe.toml"))?;
        sets.iter().try_for_each(|set| overrides.set(set))?;
        tasks::resolve(overrides)
    };
    let recipe = attempt().map_err(|error| match error {
        RecipeError::Model(error) => error.to_string(),
        other => other.to_string(),
    })?;
    let (ours, theirs) = (model_config(&recipe), model_config(base));
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours == theirs => {
            Err(format!("it changes nothing in a {} model", theirs.family()))
        }
        _ => Ok(recipe),
    }
}

/// The model's configuration with placeholder sizes for vocabulary and labels, which are equal for all
/// variations.
fn model_config(recipe: &Recipe) -> Option<ModelConfig> {
    recipe.model_config([recipe.vocabulary.size; 2], 2).ok()
}

fn in_folder(recipe: &Recipe, folder: &Path, name: &str) -> Recipe {
    let mut recipe = recipe.clone();
    recipe.output.out = Some(folder.join(name));
    recipe
}

/// `heads = 2, key_width = 64`: the keys of `other` that differ and determine its weights, except the length
/// of training.
fn differences(base: &Recipe, other: &Recipe) -> String {
    differences_of(base, other, |key| affects_weights(key) && !["steps", "time"].contains(&key.name))
}

/// Like [`differences`], or the length of training if nothing else differs: a run with a schedule of fixed
/// length cannot be extended.
fn differences_or_length(base: &Recipe, other: &Recipe) -> String {
    let texts = differences(base, other);
    if texts.is_empty() { differences_of(base, other, affects_weights) } else { texts }
}

fn affects_weights(key: &Key) -> bool {
    ["data", "vocabulary", "model", "training"].contains(&key.section)
}

fn differences_of(base: &Recipe, other: &Recipe, is_relevant: impl Fn(&Key) -> bool) -> String {
    let differs = base.differences(other);
    let texts = differs
        .iter()
        .filter(|(key, ..)| is_relevant(key))
        .map(|(key, _, theirs)| format!("{} = {}", key.name, theirs.to_string().trim_matches('"')));
    texts.collect::<Vec<_>>().join(", ")
}

fn check(base: &Recipe) -> Result<()> {
    if !base.data.task.has_validation(&base.data) {
        let flags = base.data.task.validation_flags();
        let why = format!("variations are compared on a validation set: give one ({flags})");
        return Err(Error::new(why));
    }
    let standard_input = Literal::Text("-".to_owned());
    if base.named_files().any(|(_, files)| files.contains(&standard_input)) {
        let why = "every variation reads the text, but standard input can be read only once: give files instead of -";
        return Err(Error::new(why));
    }
    if base.model.init_from.is_some() {
        return Err(Error::new(
            "a model initialised from another one has that model's sizes: variations need a recipe without model.init_from",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
