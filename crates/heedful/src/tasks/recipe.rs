//! From the values of a recipe to a complete and consistent one.

use super::{ConfigError, ModelConfig, Sizes};
use crate::recipe::{Applied, BestBy, Key, Overrides, Recipe, RecipeError};

/// Applies values to the preset that they name, and checks the result.
pub fn resolve(overrides: Overrides) -> Result<Recipe, RecipeError> {
    let start = |recipe: &mut Recipe| {
        recipe.start_from_family(recipe.model.family);
        recipe.data.task.definition().start_recipe(recipe);
    };
    let Applied { recipe, written } =
        overrides.over_preset(start, |key, location, recipe| recipe.why_unread_at(key, location))?;
    recipe.check()?;
    recipe.check_limits()?;
    recipe.data.task.definition().check_recipe(&recipe)?;
    check_pretrained(&recipe, &written)?;
    // The size of the vocabulary is an upper bound, which is enough to check the rest of the model.
    recipe.model_config([recipe.vocabulary.size; 2], 2).map_err(|cause| RecipeError::Model(cause.into()))?;
    Ok(recipe)
}

impl Recipe {
    /// The model's configuration, given the numbers of tokens (source, target) and labels.
    pub fn model_config(&self, vocabularies: [usize; 2], labels: usize) -> Result<ModelConfig, ConfigError> {
        let config = self.data.task.definition().config(self, Sizes { vocabularies, labels });
        config.validate().map(|()| config)
    }
}

/// Checks that what a user wrote agrees with the pretrained model, which would override it. The keys of a resumed run are
/// the program's, and its pretrained model may be gone.
fn check_pretrained(recipe: &Recipe, written: &[&'static Key]) -> Result<(), RecipeError> {
    let is_written = |path: &str| written.iter().any(|key| key.path() == path);
    let Some(folder) = recipe.model.init_from.as_ref().filter(|_| is_written("model.init_from")) else {
        return Ok(());
    };
    let differ = recipe.data.task.definition().disagreements(recipe, folder);
    let differ = differ.map_err(|error| RecipeError::Conflict(format!("model.init_from: {error}")))?;
    for (key, ours, theirs) in differ {
        let (path, folder) = (key.path(), folder.display());
        if is_written(&path) {
            return Err(RecipeError::Conflict(format!(
                "{path} is {ours}, and {theirs} in {folder}, whose encoder the classifier takes (model.init_from): remove \
                 {path}"
            )));
        }
        if is_written("model.preset") {
            return Err(RecipeError::Conflict(format!(
                "model.preset has {path} = {ours}, and {folder}, whose encoder the classifier takes (model.init_from), has \
                 {theirs}: name the preset of that model, or none"
            )));
        }
    }
    Ok(())
}

/// Checks the values for a task with a single vocabulary.
pub(super) fn check_single_sided(recipe: &Recipe) -> Result<(), RecipeError> {
    let task = recipe.data.task;
    if recipe.validation.best_by == BestBy::Bleu {
        return Err(RecipeError::Conflict(format!(
            "the task {task} has no BLEU: set validation.best_by to \"loss\" or \"accuracy\""
        )));
    }
    Ok(())
}
