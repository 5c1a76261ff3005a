//! The routes. Requests and responses are those of the server's route of the same name.

pub(crate) mod translate;

pub(crate) mod classify;
pub(crate) mod fill;
pub(crate) mod generate;

pub(crate) mod attend;
pub(crate) mod tokenize;

use heedful::data::text_limit::TooLong;
use heedful::{ExplainOptions, RawScores, SearchOptions, WeightForm};
use serde::Deserialize;

use crate::error::ApiError;

/// One text, or an array of texts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "must be a string or an array of strings")]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    fn all(&self) -> &[String] {
        match self {
            Texts::One(text) => std::slice::from_ref(text),
            Texts::Many(texts) => texts,
        }
    }
}

/// The options of an explanation.
fn explaining(
    form: WeightForm,
    raw_scores: bool,
    search: &SearchOptions,
) -> Result<ExplainOptions, ApiError> {
    let scores = match (raw_scores, form) {
        (false, _) => RawScores::Omit,
        (true, WeightForm::None) => {
            return Err(ApiError::bad_request("`raw_scores` needs `attention` rows or packed"));
        }
        (true, _) => RawScores::Include,
    };
    Ok(ExplainOptions { scores, ..ExplainOptions::new(form, search) })
}

/// Largest beam, and number of outputs.
const MAX_BEAM: usize = 16;

fn at_most(field: &str, count: usize, most: usize) -> Result<usize, ApiError> {
    match count <= most {
        true => Ok(count),
        false => Err(ApiError::bad_request(format!("`{field}` must be at most {most}"))),
    }
}

fn too_long(what: &str, index: usize, error: TooLong) -> ApiError {
    ApiError::too_large(format!("{what} {}: {error}: send it in parts", index + 1))
}
