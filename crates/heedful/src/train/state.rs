//! The complete state of a trainer, from which a resumed run continues bit for bit.

use heedful_tensor::collective::Failure;

use crate::store::weights::{Weights, WeightsMismatch};

/// A copy of a trainer's state between two updates.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainerState {
    /// Updates so far. Schedule, dropout and Adam's bias correction follow from it.
    pub step: u64,
    /// The model's parameters.
    pub parameters: Weights,
    /// Adam's running mean of gradients.
    pub mean: Weights,
    /// Adam's running mean of squared gradients.
    pub square: Weights,
    /// The moving average of the parameters, if there is one.
    pub average: Option<Weights>,
    /// Recent gradient norms, oldest first, for divergence detection.
    pub norms: Vec<f32>,
}

/// Why a state does not fit a trainer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// The state belongs to another model.
    #[error("the state belongs to another model: {0}; resume with the recipe of the run")]
    Model(WeightsMismatch),
    /// The other ranks cannot be reached.
    #[error("the other ranks cannot be reached: {0}")]
    Ranks(#[from] Failure),
    /// The trainer keeps a moving average, but the state has none.
    #[error("the state has no moving average; resume with the recipe of the run")]
    MissingAverage,
    /// The state has a moving average, but the trainer keeps none.
    #[error("the state has a moving average, the trainer keeps none; resume with the recipe of the run")]
    UnexpectedAverage,
}

impl crate::error::Cause for StateError {}
