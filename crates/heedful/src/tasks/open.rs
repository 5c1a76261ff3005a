//! Opens a model's folder, or its package, for a task's type.

use std::path::Path;

use heedful_tensor::{Params, Precision};
use toml::de::DeTable;

use super::folder::{ModelFolder, read_model_file};
use super::{ModelConfig, Task, TaskConfig, WrongTask};
use crate::data::TextLimit;
use crate::data::tokenizer::Tokenizers;
use crate::models::Model;
use crate::models::{DeviceChoice, PlaceError};
use crate::{Error, Result};

/// How a model is opened: where and in what numbers it computes, and how long its texts may be.
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
    /// The options of the commands: the CPU, the best type for the model, texts as long as those that it was
    /// trained with.
    pub fn new() -> OpenOptions {
        OpenOptions::default()
    }

    /// Sets what computes.
    pub fn device(mut self, device: DeviceChoice) -> OpenOptions {
        self.device = device;
        self
    }

    /// Sets the type of the matrix products. By default it is int8 if the model was stored in int8 and the
    /// CPU computes, else bf16.
    pub fn compute(mut self, compute: impl Into<Option<Precision>>) -> OpenOptions {
        self.compute = compute.into();
        self
    }

    /// Sets the most tokens of a text.
    pub fn max_tokens(mut self, tokens: usize) -> OpenOptions {
        self.max_tokens = Some(tokens);
        self
    }

    /// Moves a model to where it is to compute.
    fn move_to_device(&self, params: &Params) -> Result<()> {
        let remedy = |why| Error::new(format!("{why}: choose DeviceChoice::Cpu or DeviceChoice::Auto"));
        let chosen = self.device.choose().map_err(remedy)?;
        Ok(params.move_to(chosen.device).map_err(PlaceError::from)?)
    }

    /// The type that was named, if one was.
    pub(super) fn requested_precision(&self) -> Option<Precision> {
        self.compute
    }

    /// The most tokens of a text, if they were named.
    pub(super) fn requested_max_tokens(&self) -> Option<usize> {
        self.max_tokens
    }

    /// A limit of the lengths of texts, with the most tokens that were asked for.
    pub(super) fn limit(&self, limit: TextLimit) -> Result<TextLimit> {
        Ok(self.max_tokens.map_or(Ok(limit), |tokens| limit.with_tokens(tokens))?)
    }
}

/// A model with its configuration and its vocabularies.
pub(crate) struct OpenedModel<C: TaskConfig> {
    pub(crate) config: C,
    pub model: C::Model,
    pub tokenizers: Tokenizers,
    pub(crate) folder: ModelFolder,
    /// The most tokens of a text that it was trained with, if its folder says so.
    pub(crate) trained: Option<usize>,
}

/// Opens the folder of a model, or of a training run, whose task is that of `C`.
pub(crate) fn open<C>(folder: &Path, task: Task, options: &OpenOptions) -> Result<OpenedModel<C>>
where
    C: TaskConfig + TryFrom<ModelConfig, Error = Task>,
{
    let opened = ModelFolder::open(folder)?;
    let config = C::try_from(opened.config.clone()).map_err(|found| WrongTask::new(folder, found, task))?;
    let model = config.build(0).expect("an opened configuration was validated");
    opened.install(model.params())?;
    options.move_to_device(model.params())?;
    let trained = trained_length(folder);
    Ok(OpenedModel { config, model, tokenizers: opened.tokenizers()?, folder: opened, trained })
}

/// The longest text of a run's training, by the recipe in its folder; `None` where there is none, or it sets
/// no limit.
pub(crate) fn trained_length(folder: &Path) -> Option<usize> {
    ["max_tokens", "block"].into_iter().filter_map(|key| data_number(folder, key)).max()
}

fn data_number(folder: &Path, key: &str) -> Option<usize> {
    let text = String::from_utf8(read_model_file(folder, "recipe.toml").ok()??).ok()?;
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
    fn a_recipe_tells_the_longest_text() {
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
