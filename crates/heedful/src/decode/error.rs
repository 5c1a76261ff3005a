//! Why a search or a score fails.

use super::OptionsError;
use crate::data::batch::BatchError;
use crate::layers::TooManyWeights;
use crate::models::BrokenModel;

/// Why a search or a score fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A source or a target does not fit the model.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The options are invalid or contradict each other.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The model's scores are not finite.
    #[error(transparent)]
    Broken(#[from] BrokenModel),
    /// More attention weights than can be recorded.
    #[error(transparent)]
    Weights(#[from] TooManyWeights),
}
