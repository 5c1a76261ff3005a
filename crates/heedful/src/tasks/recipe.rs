//! From the values of a recipe to a complete and consistent one.

use std::path::Path;

use super::original::Original;
use super::{ConfigError, ModelConfig, Sizes};
use crate::Result;
use crate::recipe::{Applied, BestBy, Key, Literal, Overrides, Recipe, RecipeError};

/// Applies values to the preset that they name, and checks the result. Each of these overrides the ones before it: the preset,
/// the architecture of the model that the run starts from (`model.init_from`), the file, flags.
pub fn resolve(overrides: Overrides) -> Result<Recipe, RecipeError> {
    let original = original(&overrides)?;
    let start = |recipe: &mut Recipe| {
        let family = original.as_ref().map_or(recipe.model.family, Original::family);
        recipe.start_from_family(family);
        recipe.data.task.definition().start_recipe(recipe);
        if let Some(original) = &original {
            original.adopt(recipe);
        }
    };
    let Applied { recipe, written } =
        overrides.over_preset(start, |key, location, recipe| recipe.why_unread_at(key, location))?;
    if let Some(original) = &original {
        check_original(&recipe, original, &written)?;
    }
    recipe.check()?;
    recipe.check_limits()?;
    recipe.data.task.definition().check_recipe(&recipe)?;
    // The size of the vocabulary is an upper bound, which is enough to check the rest of the model.
    recipe.model_config([recipe.vocabulary.size; 2], 2).map_err(|cause| RecipeError::Model(cause.into()))?;
    Ok(recipe)
}

/// The model that a user wants to start from. The keys of a resumed run are the program's: it has the architecture already, and
/// the other model may be gone.
fn original(overrides: &Overrides) -> Result<Option<Original>, RecipeError> {
    let Some((key, Literal::Text(folder))) = overrides.by_user("model.init_from") else { return Ok(None) };
    let mut named = Recipe::default();
    (key.set)(&mut named, &Literal::Text(folder.clone())).map_err(RecipeError::Conflict)?;
    if let Some((key, value)) = overrides.last("data.task") {
        (key.set)(&mut named, value).map_err(RecipeError::Conflict)?;
    }
    let Some(folder) = &named.model.init_from else { return Ok(None) };
    let opened = Original::open(folder, named.data.task);
    opened.map(Some).map_err(|error| RecipeError::Conflict(format!("model.init_from: {error}")))
}

impl Recipe {
    /// Reads a recipe file; what it does not set has the value of its preset.
    pub fn open(path: impl AsRef<Path>) -> Result<Recipe> {
        Recipe::open_with(path, [""; 0])
    }

    /// As [`Recipe::open`], with settings that override those of the file: `training.steps = 1000`.
    pub fn open_with(
        path: impl AsRef<Path>,
        settings: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Recipe> {
        let mut overrides = Overrides::new();
        overrides.file(path.as_ref())?;
        settings.into_iter().try_for_each(|setting| overrides.set(setting.as_ref()))?;
        Ok(resolve(overrides)?)
    }

    /// As [`Recipe::open`], of the text of a file.
    pub fn parse(text: &str) -> Result<Recipe> {
        let mut overrides = Overrides::new();
        overrides.text(text, Path::new("recipe"))?;
        Ok(resolve(overrides)?)
    }

    /// The model's configuration, given the numbers of tokens (source, target) and labels.
    #[doc(hidden)]
    pub fn model_config(&self, vocabularies: [usize; 2], labels: usize) -> Result<ModelConfig, ConfigError> {
        let config = self.data.task.definition().config(self, Sizes { vocabularies, labels });
        config.validate().map(|()| config)
    }
}

/// Checks that what was written of the architecture is the original's.
fn check_original(recipe: &Recipe, original: &Original, written: &[&'static Key]) -> Result<(), RecipeError> {
    let folder = recipe.model.init_from.as_deref().unwrap_or(Path::new("")).display();
    if let Some(wanted) = recipe.model.init_checksum.as_ref().filter(|&wanted| wanted != original.checksum())
    {
        return Err(RecipeError::Conflict(format!(
            "the model in {folder} has the checksum {}, and model.init_checksum is {wanted}: name the model that this recipe is \
             for (model.init_from), or remove model.init_checksum",
            original.checksum()
        )));
    }
    let is_written = |path: &str| written.iter().any(|key| key.path() == path);
    let preset = Recipe::preset(recipe.model.preset);
    let mut adopted = recipe.clone();
    original.adopt(&mut adopted);
    for key in Recipe::keys().filter(|key| key.section == "model" && recipe.why_unread(key).is_none()) {
        let (path, ours, theirs) = (key.path(), key.value(recipe), key.value(&adopted));
        if ours != theirs {
            return Err(RecipeError::Conflict(format!(
                "{path} is {ours}, and {theirs} in {folder}, from which the model starts (model.init_from): remove {path}"
            )));
        }
        let named = key.value(&preset);
        let is_presets = OF_PRESETS.contains(&path.as_str()) && !is_written(&path);
        if is_written("model.preset") && is_presets && named != theirs {
            return Err(RecipeError::Conflict(format!(
                "model.preset has {path} = {named}, and {folder}, from which the model starts (model.init_from), has {theirs}: \
                 name the preset of that model, or none"
            )));
        }
    }
    Ok(())
}

/// The keys of an architecture that presets set.
const OF_PRESETS: [&str; 5] =
    ["model.d_model", "model.d_ff", "model.heads", "model.encoder_layers", "model.decoder_layers"];

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
