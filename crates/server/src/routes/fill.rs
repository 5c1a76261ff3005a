//! `POST /v1/fill`: predictions for masked tokens.

use std::sync::Arc;

use axum::extract::State;
use heedful::decode::SearchOptions;
use heedful::explain::Explanation;
use heedful::tasks::Task;
use heedful::tasks::masked::{Filled, Guess};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::pending_job::Timings;
use super::target::by_name;
use crate::app::AppState;
use crate::error::ApiError;
use crate::inference::{Delivery, Outcome};
use crate::keys::Cost;
use crate::wire::{AttentionForm, Body, ExplanationSchema, Fields, Json, ModelErrors, RequestErrors, Texts};

/// Texts with gaps.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FillRequest {
    /// One text, or an array of texts, each with `<mask>` where a token is missing.
    text: Texts,
    /// A name from /v1/models; the first masked language model by default.
    model: Option<String>,
    /// How many predictions for each gap.
    #[schema(default = 5)]
    top: Option<usize>,
    /// The form of the attention weights; with one, each result has an explanation.
    #[serde(default)]
    #[schema(default = "none")]
    attention: AttentionForm,
    /// Send the scores before the softmax too.
    #[serde(default)]
    #[schema(default = false)]
    raw_scores: bool,
}

/// The maximum and the default number of predictions for a gap.
pub(crate) const MAX_PREDICTIONS: usize = 100;
const PREDICTIONS: usize = 5;

/// The texts without gaps.
#[derive(Serialize, ToSchema)]
pub(crate) struct FillResponse {
    /// The model that predicted.
    model: String,
    /// One for each text.
    results: Vec<FilledText>,
    /// The time spent in each stage.
    timings: Timings,
}

/// A text whose gaps were filled.
#[derive(Serialize, ToSchema)]
struct FilledText {
    /// The text with the best prediction in every gap.
    #[schema(example = "the car drives through the rain")]
    text: String,
    /// For each gap its predictions, best first.
    gaps: Vec<Vec<Prediction>>,
    /// Tokens and attention weights, if `attention` asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ExplanationSchema>, nullable = false)]
    explanation: Option<Box<Explanation>>,
}

/// A prediction for a gap.
#[derive(Serialize, ToSchema)]
struct Prediction {
    /// The token's text; a piece that begins a word includes its space.
    #[schema(example = " car")]
    piece: String,
    /// Its probability.
    probability: f64,
}

/// Fill gaps
#[utoipa::path(
    post, path = "/v1/fill", tag = "v1",
    request_body(content = FillRequest, example = json!({"text": "the <mask> drives through the rain", "top": 3})),
    responses((status = 200, description = "The predictions", body = FillResponse), RequestErrors, ModelErrors)
)]
pub(crate) async fn fill(
    State(state): State<Arc<AppState>>,
    Body(fields): Body<FillRequest>,
) -> Result<Json<FillResponse>, ApiError> {
    let n_best = fields.top.unwrap_or(PREDICTIONS);
    if n_best == 0 || n_best > MAX_PREDICTIONS {
        return Err(ApiError::bad_request(format!(
            "`top` must be a whole number from 1 to {MAX_PREDICTIONS}"
        )));
    }
    let detail = fields.attention.detail(fields.raw_scores, None)?;
    let target = by_name(&state, fields.model.as_deref(), Task::Masked)?;
    let inputs = target.texts(&fields.text).await?;
    if let Some(index) = inputs.iter().position(|input| !target.loaded.engine.contains_mask(&input.tokens)) {
        let number = index + 1;
        return Err(ApiError::bad_request(format!(
            "`text`: text {number} has no <mask>: write one for each token to predict"
        )));
    }
    let options = SearchOptions { n_best, ..state.search.clone() };
    let mut job = target.submit(inputs, options, (detail, Delivery::Complete))?;
    let results = job.outcomes().await?.into_iter().filter_map(FilledText::new).collect();
    Ok(Json(FillResponse { model: target.name(), results, timings: job.timings() }))
}

impl Fields for FillRequest {
    fn cost(&self) -> Cost {
        Cost::text(self.text.characters())
    }
}

impl FilledText {
    fn new(outcome: Outcome) -> Option<FilledText> {
        let Outcome::Filled(Filled { text, gaps }, explanation) = outcome else { return None };
        let prediction = |Guess { piece, probability }: Guess| Prediction { piece, probability };
        let gaps = gaps.into_iter().map(|gap| gap.into_iter().map(prediction).collect()).collect();
        Some(FilledText { text, gaps, explanation })
    }
}
