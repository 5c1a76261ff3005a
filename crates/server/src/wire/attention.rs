//! The attention options of a request, shared by all routes that run a model.

use heedful::explain::{RawScores, WeightForm};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::inference::Detail;

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

impl AttentionForm {
    /// Whether scores are kept, given the field `raw_scores`.
    pub(crate) fn scores_kept(self, raw_scores: bool) -> Result<RawScores, ApiError> {
        match (raw_scores, self) {
            (false, _) => Ok(RawScores::Omit),
            (true, AttentionForm::None) => {
                Err(ApiError::bad_request("`raw_scores` needs `attention` rows or packed"))
            }
            (true, _) => Ok(RawScores::Include),
        }
    }

    /// The level of detail that a worker reports: only text, unless weights or alternatives are requested.
    pub(crate) fn detail(self, raw_scores: bool, alternatives: Option<usize>) -> Result<Detail, ApiError> {
        let scores = self.scores_kept(raw_scores)?;
        Ok(match (self, alternatives) {
            (AttentionForm::None, None) => Detail::Text,
            (form, alternatives) => Detail::Explained { weights: form.into(), scores, alternatives },
        })
    }
}
