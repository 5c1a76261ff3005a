//! From the values of a recipe to a complete and consistent one.

use super::{ConfigError, ModelConfig, Sizes};
use crate::data::tokenizer::Sharing;
use crate::recipe::{BestBy, Overrides, Recipe, RecipeError};

/// Applies values to the preset that they name, and checks the result.
pub fn resolve(overrides: Overrides) -> Result<Recipe, RecipeError> {
    let recipe = overrides.over_preset(|recipe| {
        recipe.start_from_family(recipe.model.family);
        recipe.data.task.definition().start_recipe(recipe);
    })?;
    recipe.check()?;
    recipe.check_limits()?;
    check_files(&recipe)?;
    recipe.data.task.definition().check_recipe(&recipe)?;
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

/// Checks that only files of the task are named.
fn check_files(recipe: &Recipe) -> Result<(), RecipeError> {
    let (task, definition) = (recipe.data.task, recipe.data.task.definition());
    let stray = recipe.named_files().find(|(key, _)| !definition.file_keys().contains(&key.name));
    match stray {
        Some((key, _)) => Err(RecipeError::Conflict(format!(
            "{} is not for the task {task}: it reads {}",
            key.path(),
            definition.training_keys()
        ))),
        None => Ok(()),
    }
}

/// Checks the values for a task with a single vocabulary.
pub(super) fn check_single_sided(recipe: &Recipe) -> Result<(), RecipeError> {
    let task = recipe.data.task;
    if recipe.validation.best_by == BestBy::Bleu {
        return Err(RecipeError::Conflict(format!(
            "the task {task} has no BLEU: set validation.best_by to \"loss\" or \"accuracy\""
        )));
    }
    let vocabulary = &recipe.vocabulary;
    let two_files = vocabulary.source_file.is_some() || vocabulary.target_file.is_some();
    if vocabulary.sharing == Sharing::Separate || two_files {
        return Err(RecipeError::Conflict(format!(
            "the task {task} has one vocabulary: use vocabulary.file, and sharing \"joint\""
        )));
    }
    Ok(())
}

/// Checks that no pretrained model is named.
pub(super) fn check_no_pretrained(recipe: &Recipe) -> Result<(), RecipeError> {
    match recipe.model.init_from {
        Some(_) => Err(RecipeError::Conflict(format!(
            "model.init_from is for the task classify, not {}",
            recipe.data.task
        ))),
        None => Ok(()),
    }
}
