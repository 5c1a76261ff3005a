//! Why a search or a score fails.

use heedful_tensor::OutOfMemory;

use super::OptionsError;
use crate::Error;
use crate::data::batch::BatchError;
use crate::layers::{HeadError, MaskFault, TooManyWeights};
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
    /// The device has no memory for the batch.
    #[error("{0}: work on fewer tokens at a time (--batch-tokens N), or use --device cpu")]
    OutOfMemory(OutOfMemory),
    /// More attention weights than can be recorded.
    #[error(transparent)]
    Weights(#[from] TooManyWeights),
    /// A given mask cannot be applied.
    #[error(transparent)]
    Mask(#[from] MaskFault),
    /// The constraints cannot be met.
    #[error("the constraints of sentence {sentence}: {reason}")]
    Constraints {
        /// The index of the sentence.
        sentence: usize,
        /// The reason, and the remedy.
        reason: &'static str,
    },
    /// Models that cannot decode together.
    #[error("the ensemble: {reason}")]
    Ensemble {
        /// The reason, and the remedy.
        reason: &'static str,
    },
    /// A search cannot use the shortlist.
    #[error("the shortlist: {reason}")]
    Shortlist {
        /// The reason, and the remedy.
        reason: &'static str,
    },
    /// The model has no such heads to remove.
    #[error(transparent)]
    Heads(#[from] HeadError),
    /// Another thread ended the call.
    #[error("the call was cancelled")]
    Cancelled,
    /// The call needs more tokens than it may generate.
    #[error("the call needs more than {budget} tokens, its budget: give it more, or less text")]
    OverBudget {
        /// The maximum number of tokens.
        budget: usize,
    },
    /// The thread that decodes has panicked.
    #[error("the thread that decodes has panicked: its message is on standard error")]
    Panicked,
}

// Not `#[source]`: the message contains it already, and a chain of causes would repeat it.
impl From<OutOfMemory> for DecodeError {
    fn from(full: OutOfMemory) -> DecodeError {
        DecodeError::OutOfMemory(full)
    }
}

impl crate::error::Cause for DecodeError {}

impl Error {
    /// Whether a call ended because another thread [cancelled](super::Cancel) it.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.cause(), Some(DecodeError::Cancelled))
    }
}

impl DecodeError {
    /// The same error for a sentence with another index.
    pub(crate) fn with_sentence(self, sentence: usize) -> DecodeError {
        match self {
            DecodeError::Batch(error) => error.with_sentence(sentence).into(),
            DecodeError::Constraints { reason, .. } => DecodeError::Constraints { sentence, reason },
            DecodeError::Broken(_) => BrokenModel { sentence }.into(),
            other => other,
        }
    }
}
