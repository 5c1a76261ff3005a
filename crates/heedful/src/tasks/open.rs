//! Opens a model's folder, or its package, for a task's façade.

use std::path::Path;

use toml::de::DeTable;

use super::folder::{ModelFolder, beside};
use super::{ModelConfig, OpenError, Task, TaskConfig, WrongTask};
use crate::data::tokenizer::Tokenizers;
use crate::models::Model;

/// A model with its configuration and its vocabularies.
pub(crate) struct Opened<C: TaskConfig> {
    pub(crate) config: C,
    pub(crate) model: C::Model,
    pub(crate) tokenizers: Tokenizers,
    pub(crate) folder: ModelFolder,
    /// The most tokens of a text that it was trained with, if its folder says so.
    pub(crate) trained: Option<usize>,
}

/// Opens the folder of a model, or of a training run, whose task is that of `C`.
pub(crate) fn open<C>(folder: &Path, task: Task) -> Result<Opened<C>, OpenError>
where
    C: TaskConfig + TryFrom<ModelConfig, Error = Task>,
{
    let opened = ModelFolder::open(folder)?;
    let config = C::try_from(opened.config.clone()).map_err(|found| WrongTask::new(folder, found, task))?;
    let model = config.build(0).expect("an opened configuration was validated");
    opened.install(model.params())?;
    let trained = trained_length(folder);
    Ok(Opened { config, model, tokenizers: opened.tokenizers()?, folder: opened, trained })
}

/// The longest text of a run's training, by the recipe in its folder; `None` where there is none, or it sets no limit.
pub(crate) fn trained_length(folder: &Path) -> Option<usize> {
    ["max_tokens", "block"].into_iter().filter_map(|key| data_number(folder, key)).max()
}

fn data_number(folder: &Path, key: &str) -> Option<usize> {
    let text = String::from_utf8(beside(folder, "recipe.toml").ok()??).ok()?;
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
