//! Opens a model's folder for a task's façade.

use std::path::Path;

use super::folder::ModelFolder;
use super::{ModelConfig, OpenError, Task, TaskConfig, WrongTask};
use crate::data::tokenizer::Tokenizers;
use crate::models::Model;

/// A model with its configuration and its vocabularies.
pub(crate) struct Opened<C: TaskConfig> {
    pub(crate) config: C,
    pub(crate) model: C::Model,
    pub(crate) tokenizers: Tokenizers,
    pub(crate) folder: ModelFolder,
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
    Ok(Opened { config, model, tokenizers: opened.tokenizers()?, folder: opened })
}
