//! Table 3 of the paper as one command: a base recipe, and the same with one thing changed, each trained as
//! `heedful train` would train it, in a folder of its own.
//!
//! ```text
//! FOLDER/base  FOLDER/heads-1  FOLDER/dropout-0.2 …     runs, each with an outcome.json once it is over
//! FOLDER/compare.md  compare.csv  report.html           what was found so far
//! ```
//!
//! A run that is over is not trained again, one that was stopped goes on.

mod change;
mod page;
mod train;

pub use change::Group;
pub use page::files;
pub use train::{Entry, finished, train};

use std::path::{Path, PathBuf};

use crate::recipe::{Key, Literal, Overrides, Recipe, RecipeError};
use crate::tasks;
use crate::tasks::ModelConfig;
use crate::train::run::{RunError, with_absolute_paths};

/// What will be trained.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The base first.
    pub variations: Vec<Variation>,
    /// What cannot be built, or would be the base again.
    pub left_out: Vec<LeftOut>,
}

/// One training run of a comparison.
#[derive(Clone, Debug)]
pub struct Variation {
    /// Of which group; none for the base.
    pub group: Option<Group>,
    /// The name of its folder: `heads-2`.
    pub name: String,
    /// What differs from the base: `heads = 2`.
    pub changes: String,
    /// The whole recipe.
    pub recipe: Recipe,
}

/// A variation that is not trained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Why not.
    pub reason: String,
}

/// Why variations cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum VariationError {
    /// Nothing to compare by.
    #[error("variations are compared by their validation: name a validation set ({flags})")]
    NoValidation {
        /// How.
        flags: &'static str,
    },
    /// Standard input can be read once.
    #[error(
        "every variation reads the text again, which standard input does not allow: name files instead of -"
    )]
    StandardInput,
    /// The sizes are given.
    #[error(
        "a classifier that starts from another model has that model's sizes: variations need a recipe without model.init_from"
    )]
    InitFrom,
    /// The folder holds something else.
    #[error("{} was trained with other settings ({differences}): choose another --out, or remove that folder", folder.display())]
    OtherRecipe {
        /// The run's folder.
        folder: PathBuf,
        /// What differs.
        differences: String,
    },
    /// The outcome of a run cannot be read.
    #[error("{} does not say how the run ended ({reason}): remove the file, and the run's end is made again", path.display())]
    Outcome {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The base recipe is wrong.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A variation cannot be trained.
    #[error("{name}: {source}")]
    Run {
        /// Which one.
        name: String,
        /// Why.
        source: Box<RunError>,
    },
    /// No folder was named.
    #[error(transparent)]
    Folder(Box<RunError>),
}

/// Plans the base and the variations of some groups, in folders below the base recipe's.
pub fn plan(base: &Recipe, groups: &[Group]) -> Result<Plan, VariationError> {
    let folder = base.output.out.clone().ok_or(VariationError::Folder(Box::new(RunError::NoFolder)))?;
    check(base)?;
    // Compared with the recipes in the runs' folders, which name files so.
    let base = with_absolute_paths(base);
    let folder = base.output.out.clone().unwrap_or(folder);
    let mut plan = Plan { variations: Vec::new(), left_out: Vec::new() };
    plan.variations.push(Variation {
        group: None,
        name: "base".to_owned(),
        changes: String::new(),
        recipe: in_folder(&base, &folder, "base"),
    });
    for &group in groups {
        for change in group.changes(&base) {
            match varied(&base, &change.sets) {
                Ok(recipe) => plan.variations.push(Variation {
                    group: Some(group),
                    changes: differences(&base, &recipe),
                    recipe: in_folder(&recipe, &folder, &change.name),
                    name: change.name,
                }),
                Err(reason) => plan.left_out.push(LeftOut { name: change.name, reason }),
            }
        }
    }
    Ok(plan)
}

/// The base with some keys set, or why that makes no model of its own.
fn varied(base: &Recipe, sets: &[String]) -> Result<Recipe, String> {
    let attempt = || {
        let mut overrides = Overrides::new();
        overrides.text(&base.to_toml(), Path::new("recipe.toml"))?;
        sets.iter().try_for_each(|set| overrides.set(set))?;
        tasks::resolve(overrides)
    };
    let recipe = attempt().map_err(|error| match error {
        RecipeError::Model(error) => error.to_string(),
        other => other.to_string(),
    })?;
    let (ours, theirs) = (built(&recipe), built(base));
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours == theirs => {
            Err(format!("it changes nothing in this model: {}", theirs.summary()))
        }
        _ => Ok(recipe),
    }
}

/// The model but for its vocabulary and labels, which are the same for all.
fn built(recipe: &Recipe) -> Option<ModelConfig> {
    recipe.model_config([recipe.vocabulary.size; 2], 2).ok()
}

fn in_folder(recipe: &Recipe, folder: &Path, name: &str) -> Recipe {
    let mut recipe = recipe.clone();
    recipe.output.out = Some(folder.join(name));
    recipe
}

/// `heads = 2, key_width = 64`: what `other` has where it differs in what decides its weights.
fn differences(base: &Recipe, other: &Recipe) -> String {
    let decides = |key: &Key| {
        ["data", "vocabulary", "model", "training"].contains(&key.section)
            && !["steps", "time"].contains(&key.name)
    };
    let differs = base.differences(other);
    let texts = differs
        .iter()
        .filter(|(key, ..)| decides(key))
        .map(|(key, _, theirs)| format!("{} = {}", key.name, theirs.to_string().trim_matches('"')));
    texts.collect::<Vec<_>>().join(", ")
}

fn check(base: &Recipe) -> Result<(), VariationError> {
    if !base.named_files().any(|(key, _)| key.name.starts_with("valid_")) {
        return Err(VariationError::NoValidation { flags: base.data.task.validation_flags() });
    }
    let standard_input = Literal::Text("-".to_owned());
    if base.named_files().any(|(_, files)| files.contains(&standard_input)) {
        return Err(VariationError::StandardInput);
    }
    if base.model.init_from.is_some() {
        return Err(VariationError::InitFrom);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
