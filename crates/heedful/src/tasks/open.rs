//! Opens a model's folder, or its package, for a task's type.

use std::path::Path;

use heedful_tensor::{Params, Precision};
use toml::de::DeTable;

use super::folder::{ModelFolder, ModelStorage};
use super::{ModelConfig, Task, TaskConfig, WrongTask};
use crate::data::TextLimit;
use crate::data::tokenizer::Tokenizers;
use crate::models::Model;
use crate::models::{DeviceChoice, PlacementError};
use crate::{Error, Result};

/// Options for opening a model: device, type of the matrix products, and maximum length of a text.
///
/// ```no_run
/// # fn main() -> heedful::Result<()> {
/// use heedful::{Classifier, DeviceChoice, OpenOptions};
///
/// let options = OpenOptions::new().device(DeviceChoice::Auto).max_tokens(512);
/// let classifier = Classifier::open_with("news", &options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    device: DeviceChoice,
    compute: Option<Precision>,
    max_tokens: Option<usize>,
}

impl OpenOptions {
    /// The defaults of the commands: the CPU, the best type for the model, and the maximum text length of its
    /// training.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Sets the device.
    pub fn device(mut self, device: DeviceChoice) -> OpenOptions {
        self.device = device;
        self
    }

    /// Sets the type of the matrix products. The default is int8 if the model was stored in int8 and runs on
    /// the CPU, else bf16.
    pub fn compute(mut self, compute: impl Into<Option<Precision>>) -> OpenOptions {
        self.compute = compute.into();
        self
    }

    /// Sets the maximum number of tokens of a text.
    pub fn max_tokens(mut self, tokens: usize) -> OpenOptions {
        self.max_tokens = Some(tokens);
        self
    }

    /// Moves the parameters of a model to the device.
    fn move_to_device(&self, params: &Params) -> Result<()> {
        let remedy = |why| Error::new(format!("{why}: choose DeviceChoice::Cpu or DeviceChoice::Auto"));
        let chosen = self.device.choose().map_err(remedy)?;
        Ok(params.move_to(chosen.device).map_err(PlacementError::from)?)
    }

    /// The explicitly set type, if any.
    pub(super) fn requested_precision(&self) -> Option<Precision> {
        self.compute
    }

    /// The explicitly set maximum number of tokens of a text, if any.
    pub(super) fn requested_max_tokens(&self) -> Option<usize> {
        self.max_tokens
    }

    /// The limit of text lengths, with the explicitly set maximum applied.
    pub(super) fn limit(&self, limit: TextLimit) -> Result<TextLimit> {
        Ok(self.max_tokens.map_or(Ok(limit), |tokens| limit.with_tokens(tokens))?)
    }
}

/// An opened model with its configuration and vocabularies.
pub(crate) struct OpenedModel<C: TaskConfig> {
    pub(crate) config: C,
    pub model: C::Model,
    pub tokenizers: Tokenizers,
    pub(crate) folder: ModelFolder,
    /// The maximum number of tokens of a text in training, if the folder has the recipe.
    pub(crate) trained: Option<usize>,
}

/// Loads a model of an opened folder for `task`.
pub(crate) fn open<C>(opened: ModelFolder, task: Task, options: &OpenOptions) -> Result<OpenedModel<C>>
where
    C: TaskConfig + TryFrom<ModelConfig, Error = Task>,
{
    let wrong_task = |found| WrongTask::new(&opened.path, found, task);
    let config = C::try_from(opened.config.clone()).map_err(wrong_task)?;
    let model = config.build(0).expect("an opened configuration was validated");
    opened.install(model.params())?;
    options.move_to_device(model.params())?;
    let trained = opened.storage().ok().and_then(|storage| trained_length_in(&storage));
    Ok(OpenedModel { config, model, tokenizers: opened.tokenizers()?, folder: opened, trained })
}

/// The maximum text length in training, from the recipe in the folder; `None` without a recipe or without a
/// limit.
pub(crate) fn trained_length(folder: &Path) -> Option<usize> {
    trained_length_in(&ModelStorage::of(folder).ok()?)
}

fn trained_length_in(storage: &ModelStorage) -> Option<usize> {
    ["max_tokens", "block"].into_iter().filter_map(|key| data_number(storage, key)).max()
}

fn data_number(storage: &ModelStorage, key: &str) -> Option<usize> {
    let text = String::from_utf8(storage.read("recipe.toml").ok()??).ok()?;
    let recipe = DeTable::parse(&text).ok()?;
    let data = recipe.get_ref().get("data")?.get_ref().as_table()?;
    data.get(key)?.get_ref().as_integer()?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::recipe::Recipe;

    #[test]
    fn the_maximum_text_length_is_read_from_the_recipe() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(trained_length(folder.path()), None);
        let mut recipe = Recipe::default();
        for (task, max_tokens, block, longest) in [
            (Task::Translate, Some(256), None, Some(256)),
            (Task::Language, None, Some(4096), Some(4096)),
            (Task::Translate, None, None, None),
        ] {
            (recipe.data.task, recipe.data.max_tokens, recipe.data.block) = (task, max_tokens, block);
            fs::write(folder.path().join("recipe.toml"), recipe.to_toml()).expect("room on the disk");
            assert_eq!(trained_length(folder.path()), longest);
        }
    }
}
