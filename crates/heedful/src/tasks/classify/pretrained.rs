//! Initializing a classifier with the encoder of a masked language model.

use std::path::Path;

use heedful_tensor::Params;

use crate::layers::{Halves, Positions};
use crate::models::transformer::StackConfig;
use crate::recipe::{PositionKind, Recipe};
use crate::tasks::folder::ModelFolder;
use crate::tasks::masked::MaskedConfig;
use crate::tasks::{OpenError, Task, TaskError, WrongTask};

/// Parameters that a classifier shares with a masked language model.
const SHARED: [&str; 4] = ["embedding.", "embedding_norm.", "position.", "encoder."];

/// Sets the recipe's encoder to the sizes of the one in `folder`.
pub(super) fn adopt(recipe: &mut Recipe, folder: &Path) -> Result<(), TaskError> {
    let (_, MaskedConfig { stack, .. }) = open(folder)?;
    let StackConfig { d_model, d_ff, heads, key_width, value_width, layers, .. } = stack;
    let model = &mut recipe.model;
    (model.d_model, model.d_ff, model.heads) = (d_model, d_ff, heads);
    (model.key_width, model.value_width, model.encoder_layers) = (key_width, value_width, layers);
    (model.norm, model.norm_kind) = (stack.norm, stack.norm_kind);
    model.surround_text = stack.special.around_text() > 0;
    (model.scale_embeddings, model.embedding_norm) = (stack.scale_embeddings, stack.embedding_norm);
    model.norm_epsilon = exact(stack.norm_epsilon);
    (model.activation, model.score, model.window) = (stack.activation, stack.score, stack.window);
    model.positions = match stack.positions {
        Positions::Sinusoidal => PositionKind::Sinusoidal,
        Positions::Halves(Halves::MarianMt) => PositionKind::MarianMt,
        Positions::Halves(Halves::Marian) => PositionKind::Marian,
        Positions::Halves(Halves::OpenNmt) => PositionKind::OpenNmt,
        Positions::Learned { max_length } => {
            model.max_positions = max_length;
            PositionKind::Learned
        }
        Positions::None => PositionKind::None,
    };
    Ok(())
}

/// Copies the encoder in `folder` into a classifier's parameters.
pub(super) fn install(params: &Params, folder: &Path) -> Result<(), TaskError> {
    let weights = open(folder)?.0.weights().map_err(OpenError::from)?;
    for param in params.iter().filter(|param| SHARED.iter().any(|shared| param.name().starts_with(shared))) {
        let values = weights.get(param.name());
        match values.filter(|values| values.len() == param.range().len()) {
            Some(values) => param.set(values),
            None => {
                let (folder, name) = (folder.to_owned(), param.name().to_owned());
                return Err(TaskError::OtherEncoder { folder, name });
            }
        }
    }
    Ok(())
}

fn open(folder: &Path) -> Result<(ModelFolder, MaskedConfig), OpenError> {
    let opened = ModelFolder::open(folder)?;
    let config = MaskedConfig::try_from(opened.config.clone());
    let config = config.map_err(|found| WrongTask::new(folder, found, Task::Masked))?;
    Ok((opened, config))
}

/// The f64 with the same decimal form as this f32: 0.1, not 0.10000000149.
fn exact(value: f32) -> f64 {
    value.to_string().parse().expect("a number is written as one")
}
