//! Starting from another model: the encoder of a masked language model becomes that of a classifier.

use std::path::Path;

use heedful_tensor::Params;

use super::RunError;
use crate::family::ModelConfig;
use crate::folder::ModelFolder;
use crate::masked::MaskedConfig;
use crate::task::{Task, WrongTask};
use crate::train::recipe::Recipe;

/// Parameters that a classifier shares with a masked language model.
const SHARED: [&str; 3] = ["embedding.", "position.", "encoder."];

/// The recipe with the sizes of the encoder that it starts from, if it starts from one.
pub(super) fn adopted(recipe: &Recipe) -> Result<Recipe, RunError> {
    let mut recipe = recipe.clone();
    if let Some(folder) = recipe.model.init_from.clone() {
        recipe.take_encoder(&open(&folder)?.1.stack);
    }
    Ok(recipe)
}

/// Copies the encoder in `folder` into a classifier's parameters.
pub(super) fn install(folder: &Path, params: &Params) -> Result<(), RunError> {
    let weights = open(folder)?.0.weights()?;
    for param in params.iter().filter(|param| SHARED.iter().any(|shared| param.name().starts_with(shared))) {
        let values = weights.get(param.name());
        match values.filter(|values| values.len() == param.range().len()) {
            Some(values) => param.set(values),
            None => {
                let (folder, name) = (folder.to_owned(), param.name().to_owned());
                return Err(RunError::OtherEncoder { folder, name });
            }
        }
    }
    Ok(())
}

fn open(folder: &Path) -> Result<(ModelFolder, MaskedConfig), RunError> {
    let opened = ModelFolder::open(folder)?;
    let ModelConfig::Masked(config) = opened.config.clone() else {
        return Err(WrongTask::new(folder, opened.config.task(), Task::Mlm).into());
    };
    Ok((opened, config))
}
