//! `POST /v1/fill`: what may have stood in the gaps of texts.

use std::sync::Arc;

use axum::extract::State;
use heedful::decode::SearchOptions;
use heedful::explain::Explanation;
use heedful::tasks::Task;
use heedful::tasks::masked::{Filled, Guess};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::model_selection::by_name;
use super::pending_job::{PendingJob, Timings};
use super::tokenize::{check_characters, off_thread, too_long};
use crate::app::AppState;
use crate::error::ApiError;
use crate::inference::{Delivery, Detail, Input, Job, Outcome};
use crate::wire::{
    AttentionForm, Body, ExplanationSchema, Json, ModelErrors, RequestErrors, Texts, at_most, scores_kept,
};

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

/// The most predictions for a gap, and their default.
pub(crate) const MOST_PREDICTIONS: usize = 100;
const PREDICTIONS: usize = 5;

/// The texts without gaps.
#[derive(Serialize, ToSchema)]
pub(crate) struct FillResponse {
    /// The model that predicted.
    model: String,
    /// One for each text.
    results: Vec<FilledText>,
    /// Where the time went.
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
    post,
    path = "/v1/fill",
    tag = "v1",
    request_body(content = FillRequest, example = json!({"text": "the <mask> drives through the rain", "top": 3})),
    responses((status = 200, description = "The predictions", body = FillResponse), RequestErrors, ModelErrors)
)]
pub(crate) async fn fill(
    State(state): State<Arc<AppState>>,
    Body { fields, key }: Body<FillRequest>,
) -> Result<Json<FillResponse>, ApiError> {
    let top = at_most("top", fields.top.unwrap_or(PREDICTIONS), MOST_PREDICTIONS)?;
    if top == 0 {
        return Err(ApiError::bad_request(format!(
            "`top` must be a whole number from 1 to {MOST_PREDICTIONS}"
        )));
    }
    let detail = match (fields.attention, scores_kept(fields.raw_scores, fields.attention)?) {
        (AttentionForm::None, _) => Detail::Text,
        (form, scores) => Detail::Explained { weights: form.into(), scores, alternatives: None },
    };
    let texts = fields.text;
    let served = by_name(&state, fields.model.as_deref(), Task::Masked)?;
    check_characters(&state, texts.characters())?;
    let (count, most) = (texts.all().len(), state.limits.sentences);
    if count > most {
        return Err(ApiError::too_large(format!("`text` has {count} texts, and {most} are allowed")));
    }
    state.keys.admit(key, texts.characters())?;

    let loaded = served.current();
    let (engine, given) = (loaded.engine.clone(), texts.all().to_vec());
    let bytes = given.iter().map(String::len).sum();
    let input = move |(index, text): (usize, String)| {
        let tokens = engine.read(&text).map_err(|error| too_long("text", index, error))?;
        if !engine.masks(&tokens) {
            let number = index + 1;
            return Err(ApiError::bad_request(format!(
                "`text`: text {number} has no <mask>: write one for each token to predict"
            )));
        }
        Ok(Input { tokens, text, prefix: Vec::new() })
    };
    let read = move || given.into_iter().enumerate().map(input).collect::<Result<_, ApiError>>();
    let inputs: Vec<Input> = off_thread(&state, bytes, read).await??;
    let options = SearchOptions { n_best: top, ..state.search.clone() };
    let job = Job { inputs, options: Arc::new(options), detail, delivery: Delivery::Complete };
    let mut job = PendingJob::submit(&state, served, &loaded, job)?;
    let results = job.outcomes().await?.into_iter().filter_map(FilledText::new).collect();
    Ok(Json(FillResponse { model: served.spec.name.clone(), results, timings: job.timings() }))
}

impl FilledText {
    fn new(outcome: Outcome) -> Option<FilledText> {
        let Outcome::Filled(Filled { text, gaps }, explanation) = outcome else { return None };
        let prediction = |Guess { piece, probability }: Guess| Prediction { piece, probability };
        let gaps = gaps.into_iter().map(|gap| gap.into_iter().map(prediction).collect()).collect();
        Some(FilledText { text, gaps, explanation })
    }
}
