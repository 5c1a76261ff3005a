//! The pretrained model that a run starts from (`model.init_from`).
//!
//! The new model inherits the architecture, the vocabularies, the special tokens and the weights. Parameters
//! that the pretrained model lacks are initialized randomly: the head of a classifier that starts from a
//! masked language model, and the rows of labels that a pretrained classifier does not have.

use std::path::Path;

use heedful_tensor::Param;

use super::folder::ModelFolder;
use super::{ModelConfig, Task};
use crate::data::SpecialTokens;
use crate::data::labels::Labels;
use crate::data::tokenizer::{ExtendedTokenizers, read_tokens};
use crate::models::Model;
use crate::recipe::{Family, Recipe};
use crate::{Error, Result};

/// For source and target: the added tokens in the order of their ids, each as the pieces that its text has in
/// the pretrained model's vocabulary.
pub(crate) type AddedPieces = [Vec<Vec<u32>>; 2];

/// Prefix of the parameters with one row or one value for each label.
const LABEL_PARAMETERS: &str = "labels.";

/// A pretrained model.
pub(crate) struct Pretrained {
    folder: ModelFolder,
    checksum: String,
}

impl Pretrained {
    /// Opens the folder of a pretrained model for a run with the task `task`. The weights are read later.
    pub(crate) fn open(path: &Path, task: Task) -> Result<Pretrained> {
        let folder = ModelFolder::open(path)?;
        let found = folder.config.task();
        if !task.definition().words().starts_from.contains(&found) {
            let (new_model, starts_from) = (task.model(), task.starts_from());
            return Err(Error::new(format!(
                "{} holds {}, from which {new_model} cannot start: name {starts_from}, or train for another task (--task {found})",
                path.display(),
                found.model(),
            )));
        }
        let checksum = folder.checksum()?;
        Ok(Pretrained { folder, checksum })
    }

    /// The family of the model.
    pub(crate) fn family(&self) -> Family {
        self.folder.config.family()
    }

    /// The folder of the model.
    pub(crate) fn path(&self) -> &Path {
        &self.folder.path
    }

    /// The checksum of its files, which identifies the model.
    pub(crate) fn checksum(&self) -> &str {
        &self.checksum
    }

    /// Sets the architecture keys of a recipe to those of this model.
    pub(crate) fn inherit_architecture(&self, recipe: &mut Recipe) {
        recipe.data.task.definition().inherit_architecture(recipe, &self.folder.config);
        recipe.model.init_checksum = Some(self.checksum.clone());
    }

    /// The vocabularies, with the tokens of a file added.
    pub(crate) fn tokenizers(&self, add: Option<&Path>) -> Result<ExtendedTokenizers> {
        let tokenizers = self.folder.tokenizers()?;
        let Some(file) = add else {
            return Ok(ExtendedTokenizers { tokenizers, pieces: AddedPieces::default(), known: 0 });
        };
        let grown = read_tokens(file).and_then(|tokens| tokenizers.with_added_tokens(&tokens));
        Ok(grown?)
    }

    /// The special tokens of the model.
    pub(crate) fn special_tokens(&self) -> SpecialTokens {
        self.folder.config.special_tokens()
    }

    /// Copies the parameters into a new model for `task` with the labels `labels`, if the task has labels.
    /// The rows of an added token are the means of the rows of its pieces.
    pub(crate) fn install(
        &self,
        model: &dyn Model,
        task: Task,
        labels: Option<&Labels>,
        added: &AddedPieces,
    ) -> Result<()> {
        let pretrained = self.folder.load()?;
        let known = match &self.folder.config {
            ModelConfig::Classify(_) => Some(self.folder.labels()?),
            _ => None,
        };
        for param in model.params().iter() {
            let name = param.name();
            let found = pretrained.params().get(name);
            match (found, &known, labels) {
                (Some(found), Some(known), Some(labels)) if name.starts_with(LABEL_PARAMETERS) => {
                    let (mut values, theirs) = (param.to_vec(), found.to_vec());
                    // One row or one value for each label.
                    let width = values.len() / labels.count();
                    for (label, to) in labels.names().iter().zip(values.chunks_exact_mut(width)) {
                        if let Some(index) = known.index(label) {
                            let from = index as usize * width;
                            to.copy_from_slice(&theirs[from..from + width]);
                        }
                    }
                    param.set(&values);
                }
                (Some(found), ..) if found.shape() == param.shape() => param.set(&found.to_vec()),
                (Some(found), ..)
                    if with_added_rows(&found, added)
                        .is_some_and(|values| set_if_it_fits(&param, &values)) => {}
                (None, ..) if task.definition().is_reinitialized(name) => {}
                _ => {
                    let folder = self.folder.path.display();
                    return Err(Error::new(format!(
                        "the model cannot start from {folder}: its `{name}` is missing or has another size than the new model's"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Sets a parameter if the number of values matches; returns whether it did.
fn set_if_it_fits(param: &Param, values: &[f32]) -> bool {
    let fits = param.range().len() == values.len();
    if fits {
        param.set(values);
    }
    fits
}

/// An embedding table or an output bias, extended by the means of the pieces of each added token; `None` for
/// other parameters.
fn with_added_rows(table: &Param, [source, target]: &AddedPieces) -> Option<Vec<f32>> {
    let added = match table.name() {
        "source_embedding.weight" => source,
        // A joint table is also the output projection.
        "embedding.weight" | "target_embedding.weight" | "output.weight" | "output.bias" => target,
        _ => return None,
    };
    let mut values = table.to_vec();
    let width = if table.name() == "output.bias" { 1 } else { table.shape()[1] };
    for pieces in added {
        let mut mean = vec![0.0; width];
        for &piece in pieces {
            let row = &values[piece as usize * width..][..width];
            mean.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        let count = pieces.len().max(1) as f64;
        values.extend(mean.iter().map(|sum| (sum / count) as f32));
    }
    Some(values)
}
