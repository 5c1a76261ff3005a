//! The model that a run starts from (`model.init_from`).
//!
//! The new model has its architecture, its vocabularies and its special tokens, and begins with its weights. What the original
//! does not have begins as in a model that starts from nothing: the labels of a classifier that starts from a masked language
//! model, labels that a classifier did not know.

use std::path::Path;

use heedful_tensor::Param;

use super::folder::ModelFolder;
use super::{ModelConfig, Task};
use crate::data::SpecialTokens;
use crate::data::labels::Labels;
use crate::data::tokenizer::{GrownTokenizers, read_tokens};
use crate::models::Model;
use crate::recipe::{Family, Recipe};
use crate::{Error, Result};

/// Of source and target: for each token that the new vocabularies have more than the original's, in the order of their ids, the
/// pieces that its text had there.
pub(crate) type AddedPieces = [Vec<Vec<u32>>; 2];

/// What is kept of a label, one row or one number for each.
const OF_LABELS: &str = "labels.";

/// A model that another one starts from.
pub(crate) struct Original {
    folder: ModelFolder,
    checksum: String,
}

impl Original {
    /// Opens a model's folder, from which a model for `task` starts. The weights are read later.
    pub(crate) fn open(path: &Path, task: Task) -> Result<Original> {
        let folder = ModelFolder::open(path)?;
        let found = folder.config.task();
        if !task.definition().words().starts_from.contains(&found) {
            let (wanted, starts_from) = (task.model(), task.starts_from());
            return Err(Error::new(format!(
                "{} holds {}, from which {wanted} cannot start: name {starts_from}, or train for another task (--task {found})",
                path.display(),
                found.model(),
            )));
        }
        let checksum = folder.checksum()?;
        Ok(Original { folder, checksum })
    }

    /// The family of the model.
    pub(crate) fn family(&self) -> Family {
        self.folder.config.family()
    }

    /// Its folder.
    pub(crate) fn path(&self) -> &Path {
        &self.folder.path
    }

    /// The checksum of its files: another model has another one.
    pub(crate) fn checksum(&self) -> &str {
        &self.checksum
    }

    /// Sets the keys of a recipe that describe the architecture to those of this model.
    pub(crate) fn adopt(&self, recipe: &mut Recipe) {
        recipe.data.task.definition().adopt(recipe, &self.folder.config);
        recipe.model.init_checksum = Some(self.checksum.clone());
    }

    /// Its vocabularies, with the tokens of a file.
    pub(crate) fn tokenizers(&self, add: Option<&Path>) -> Result<GrownTokenizers> {
        let tokenizers = self.folder.tokenizers()?;
        let Some(file) = add else {
            return Ok(GrownTokenizers { tokenizers, pieces: AddedPieces::default(), known: 0 });
        };
        let grown = read_tokens(file).and_then(|tokens| tokenizers.with_added(&tokens));
        Ok(grown?)
    }

    /// Its special tokens.
    pub(crate) fn special_tokens(&self) -> SpecialTokens {
        self.folder.config.special_tokens()
    }

    /// Copies its parameters into a new model for `task`, whose labels, if it has some, are `labels`. What the new model has of
    /// added tokens is the mean of what the original has of their pieces.
    pub(crate) fn install(
        &self,
        model: &dyn Model,
        task: Task,
        labels: Option<&Labels>,
        added: &AddedPieces,
    ) -> Result<()> {
        let original = self.folder.load()?;
        let known = match &self.folder.config {
            ModelConfig::Classify(_) => Some(self.folder.labels()?),
            _ => None,
        };
        for param in model.params().iter() {
            let name = param.name();
            let found = original.params().get(name);
            match (found, &known, labels) {
                (Some(found), Some(known), Some(labels)) if name.starts_with(OF_LABELS) => {
                    let (mut values, theirs) = (param.to_vec(), found.to_vec());
                    // One row for each label, or one number.
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
                (Some(found), ..) if grown(&found, added).is_some_and(|values| is_set(&param, &values)) => {}
                (None, ..) if task.definition().begins_anew(name) => {}
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

/// Sets a parameter if it has as many numbers.
fn is_set(param: &Param, values: &[f32]) -> bool {
    let fits = param.range().len() == values.len();
    if fits {
        param.set(values);
    }
    fits
}

/// A table with a row for each token, or a bias with a number for each, and the means of pieces for added ones; `None` if the
/// parameter is none of them.
fn grown(table: &Param, [source, target]: &AddedPieces) -> Option<Vec<f32>> {
    let added = match table.name() {
        "source_embedding.weight" => source,
        // A table of both sides is that of the outputs too.
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
