//! Resolves the given values into a complete and consistent recipe.

use std::path::Path;

use super::pretrained::Pretrained;
use super::{ConfigError, ModelConfig, Sizes};
use crate::Result;
use crate::recipe::{Applied, BestBy, Key, Literal, Overrides, Recipe, RecipeError};

/// Applies values to their preset and checks the result. In order of increasing precedence: the preset, the
/// architecture of the pretrained model (`model.init_from`), the file, flags.
pub fn resolve(overrides: Overrides) -> Result<Recipe, RecipeError> {
    let pretrained = pretrained(&overrides)?;
    let start = |recipe: &mut Recipe| {
        let family = pretrained.as_ref().map_or(recipe.model.family, Pretrained::family);
        recipe.start_from_family(family);
        recipe.data.task.definition().start_recipe(recipe);
        if let Some(pretrained) = &pretrained {
            pretrained.inherit_architecture(recipe);
        }
    };
    let Applied { recipe, written } =
        overrides.over_preset(start, |key, location, recipe| recipe.why_unused_at(key, location))?;
    if let Some(pretrained) = &pretrained {
        check_inherited(&recipe, pretrained, &written)?;
    }
    recipe.check()?;
    recipe.check_limits()?;
    recipe.data.task.definition().check_recipe(&recipe)?;
    // The size of the vocabulary is an upper bound, which is enough to check the rest of the model.
    recipe.model_config([recipe.vocabulary.size; 2], 2).map_err(|cause| RecipeError::Model(cause.into()))?;
    Ok(recipe)
}

/// The pretrained model, if a user set one. A resumed run does not need it: the program wrote the
/// architecture into its recipe, and the pretrained model may have been deleted.
fn pretrained(overrides: &Overrides) -> Result<Option<Pretrained>, RecipeError> {
    let Some((key, Literal::Text(folder))) = overrides.by_user("model.init_from") else { return Ok(None) };
    let mut partial = Recipe::default();
    (key.set)(&mut partial, &Literal::Text(folder.clone())).map_err(RecipeError::Conflict)?;
    if let Some((key, value)) = overrides.last("data.task") {
        (key.set)(&mut partial, value).map_err(RecipeError::Conflict)?;
    }
    let Some(folder) = &partial.model.init_from else { return Ok(None) };
    let opened = Pretrained::open(folder, partial.data.task);
    opened.map(Some).map_err(|error| RecipeError::Conflict(format!("model.init_from: {error}")))
}

impl Recipe {
    /// Reads a recipe file. Keys that it does not set have the values of its preset.
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

    /// As [`Recipe::open`], for the text of a recipe.
    pub fn parse(text: &str) -> Result<Recipe> {
        let mut overrides = Overrides::new();
        overrides.text(text, Path::new("recipe"))?;
        Ok(resolve(overrides)?)
    }

    /// The configuration of the model, given the sizes of the vocabularies (source, target) and the number of
    /// labels.
    #[doc(hidden)]
    pub fn model_config(&self, vocabularies: [usize; 2], labels: usize) -> Result<ModelConfig, ConfigError> {
        let config = self.data.task.definition().config(self, Sizes { vocabularies, labels });
        config.validate().map(|()| config)
    }
}

/// Checks that explicitly set architecture keys agree with the pretrained model.
fn check_inherited(
    recipe: &Recipe,
    pretrained: &Pretrained,
    written: &[&'static Key],
) -> Result<(), RecipeError> {
    let folder = recipe.model.init_from.as_deref().unwrap_or(Path::new("")).display();
    if let Some(expected) =
        recipe.model.init_checksum.as_ref().filter(|&expected| expected != pretrained.checksum())
    {
        return Err(RecipeError::Conflict(format!(
            "the model in {folder} has the checksum {}, and model.init_checksum is {expected}: name the model that this recipe is \
             for (model.init_from), or remove model.init_checksum",
            pretrained.checksum()
        )));
    }
    let is_written = |path: &str| written.iter().any(|key| key.path() == path);
    let preset = Recipe::preset(recipe.model.preset);
    let mut inherited = recipe.clone();
    pretrained.inherit_architecture(&mut inherited);
    for key in Recipe::keys().filter(|key| key.section == "model" && recipe.why_unused(key).is_none()) {
        let (path, ours, theirs) = (key.path(), key.value(recipe), key.value(&inherited));
        if ours != theirs {
            return Err(RecipeError::Conflict(format!(
                "{path} is {ours}, and {theirs} in {folder}, from which the model starts (model.init_from): remove {path}"
            )));
        }
        let preset_value = key.value(&preset);
        let is_from_preset = PRESET_SIZE_KEYS.contains(&path.as_str()) && !is_written(&path);
        if is_written("model.preset") && is_from_preset && preset_value != theirs {
            return Err(RecipeError::Conflict(format!(
                "model.preset has {path} = {preset_value}, and {folder}, from which the model starts (model.init_from), has {theirs}: \
                 name the preset of that model, or none"
            )));
        }
    }
    Ok(())
}

/// The architecture keys that presets set.
const PRESET_SIZE_KEYS: [&str; 5] =
    ["model.d_model", "model.d_ff", "model.heads", "model.encoder_layers", "model.decoder_layers"];

/// Checks the values of a task with a single vocabulary.
pub(super) fn check_single_sided(recipe: &Recipe) -> Result<(), RecipeError> {
    let task = recipe.data.task;
    if recipe.validation.best_by == BestBy::Bleu {
        return Err(RecipeError::Conflict(format!(
            "the task {task} has no BLEU: set validation.best_by to \"loss\" or \"accuracy\""
        )));
    }
    Ok(())
}
