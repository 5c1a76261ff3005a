//! From values and where they come from to a recipe that can be followed.

use super::{ConfigError, ModelConfig, Sizes};
use crate::data::tokenizer::Sharing;
use crate::recipe::{BestBy, Overrides, Recipe, RecipeError};

/// Puts values together over the preset that they name, and checks the whole.
pub fn resolve(overrides: Overrides) -> Result<Recipe, RecipeError> {
    let recipe = overrides.over_preset(|recipe| {
        recipe.start_from_family(recipe.model.family);
        recipe.data.task.definition().start_recipe(recipe);
    })?;
    recipe.check()?;
    check_files(&recipe)?;
    recipe.data.task.definition().check_recipe(&recipe)?;
    // The size of the vocabulary is an upper bound; nothing but its tokens is missing to build the model.
    recipe.model_config([recipe.vocabulary.size; 2], 2).map_err(|cause| RecipeError::Model(cause.into()))?;
    Ok(recipe)
}

impl Recipe {
    /// The model, once it is known how many tokens (source, target) and labels there are.
    pub fn model_config(&self, vocabularies: [usize; 2], labels: usize) -> Result<ModelConfig, ConfigError> {
        let config = self.data.task.definition().config(self, Sizes { vocabularies, labels });
        config.validate().map(|()| config)
    }
}

/// Whether files are named that the task does not read.
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

/// Whether the values fit a task without a second side.
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

/// Whether nothing asks to start from a pretrained model.
pub(super) fn check_no_pretrained(recipe: &Recipe) -> Result<(), RecipeError> {
    match recipe.model.init_from {
        Some(_) => Err(RecipeError::Conflict(format!(
            "model.init_from is for the task classify, not {}",
            recipe.data.task
        ))),
        None => Ok(()),
    }
}
