//! Everything that decides how training goes on: what a checkpoint must hold so that nobody can tell the run was
//! interrupted.

use crate::store::weights::{Weights, WeightsMismatch};

/// A copy of a trainer's state between two updates.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainerState {
    /// Updates so far. Schedule, dropout and Adam's corrections follow from it.
    pub step: u64,
    /// The model's parameters.
    pub parameters: Weights,
    /// Adam's running mean of gradients.
    pub mean: Weights,
    /// Adam's running mean of squared gradients.
    pub square: Weights,
    /// The moving average of the parameters, if there is one.
    pub average: Option<Weights>,
    /// Recent gradient norms, the oldest first: what an explosion is measured against.
    pub norms: Vec<f32>,
}

/// A state that is not of this trainer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// Of another model.
    #[error("the state is of another model: {0}; resume with the recipe of the run")]
    Model(WeightsMismatch),
    /// The trainer averages, the state does not, or the other way round.
    #[error("{0}; resume with the recipe of the run")]
    Average(&'static str),
}
