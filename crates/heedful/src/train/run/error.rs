//! Why a run cannot start, or ends with an error.

use std::path::Path;

use heedful_tensor::OutOfMemory;
use heedful_tensor::collective::Failure;

use crate::Error;
use crate::error::Cause;
use crate::train::TrainError;

/// Training diverged; the last checkpoint is kept.
#[derive(Debug, thiserror::Error)]
#[error("{error}{}", kept_checkpoint(*kept))]
pub(crate) struct Diverged {
    /// The step and the reason.
    pub(super) error: TrainError,
    /// The last good checkpoint.
    pub(super) kept: Option<u64>,
}

impl Cause for Diverged {}

/// A batch does not fit on the GPU; the steps before it are kept.
pub(super) fn does_not_fit(error: &TrainError, kept: Option<u64>) -> Error {
    Error::new(format!("{error}{}", kept_checkpoint(kept)))
}

fn kept_checkpoint(kept: Option<u64>) -> String {
    kept.map_or(String::new(), |step| format!(" (the checkpoint of step {step} is kept)"))
}

/// The recipe names no folder for the run.
pub(crate) fn no_folder() -> Error {
    Error::new(
        "no folder for the run was named: add --out RUN, or set out in the section [output] of the recipe",
    )
}

/// The folder holds no run to resume.
pub fn not_a_run(folder: &Path) -> Error {
    let folder = folder.display();
    Error::new(format!(
        "{folder} is not the folder of a run (it has no recipe.toml): start one with heedful train … --out {folder}"
    ))
}

/// The folder already holds a run, which a new one would overwrite.
pub(super) fn occupied(folder: &Path, step: u64) -> Error {
    let folder = folder.display();
    Error::new(format!(
        "{folder} already holds a run of {step} steps: resume it (--resume {folder}), or choose another folder"
    ))
}

/// The other ranks cannot be reached.
pub(super) fn unreachable_ranks(failure: Failure) -> Error {
    Error::new(format!(
        "the other ranks cannot be reached: {failure}; resume the run from its newest checkpoint (--resume)"
    ))
}

/// The model with its optimizer state does not fit on the GPU.
pub(super) fn large_for_gpu(why: OutOfMemory) -> Error {
    Error::new(format!(
        "the model with its optimizer does not fit into the memory of the GPU ({why}): choose a smaller model, or --device cpu"
    ))
}
