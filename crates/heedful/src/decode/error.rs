//! Why nothing can be decoded.

use super::OptionsError;
use crate::data::batch::BatchError;
use crate::models::BrokenModel;

/// Why a search or a score comes to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A source or a target that the model cannot read.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Options that contradict themselves.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// A model whose scores are not numbers.
    #[error(transparent)]
    Broken(#[from] BrokenModel),
}
