//! What a request asks of attention weights, the same for every route that runs a model.

use heedful::explain::{ScoresKept, WeightForm};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::ApiError;

/// The form of attention weights. packed: base 64 of 16-bit integers, low byte first, 65535 for 1.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AttentionForm {
    /// No weights.
    #[default]
    None,
    /// Rows of numbers.
    Rows,
    /// One string for each head.
    Packed,
}

impl From<AttentionForm> for WeightForm {
    fn from(form: AttentionForm) -> WeightForm {
        match form {
            AttentionForm::None => WeightForm::None,
            AttentionForm::Rows => WeightForm::Rows,
            AttentionForm::Packed => WeightForm::Packed,
        }
    }
}

/// Whether scores are kept, given the fields `raw_scores` and `attention`.
pub(crate) fn scores_kept(raw_scores: bool, form: AttentionForm) -> Result<ScoresKept, ApiError> {
    match (raw_scores, form) {
        (false, _) => Ok(ScoresKept::No),
        (true, AttentionForm::None) => {
            Err(ApiError::bad_request("`raw_scores` needs `attention` rows or packed"))
        }
        (true, _) => Ok(ScoresKept::Yes),
    }
}
