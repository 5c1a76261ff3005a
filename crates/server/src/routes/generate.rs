//! `POST /v1/generate`: a language model continues a prompt, as one response or as a stream.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use heedful::decode::{Sampling, SearchOptions};
use heedful::explain::{ExplainedToken, Explanation};
use heedful::tasks::Task;
use heedful::tasks::translate::Output;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::pending_job::{JobUpdate, PendingJob, Timings};
use super::sse;
use super::target::by_name;
use super::translate::max_alternatives;
use crate::app::AppState;
use crate::error::{ApiError, ErrorBody};
use crate::inference::{Delivery, DetailedOutput, Input, Outcome};
use crate::keys::Cost;
use crate::models::Engine;
use crate::wire::{
    AttentionForm, Body, ExplanationSchema, Fields, Json, ModelErrors, RequestErrors, TokenSchema, at_most,
};

/// A prompt to continue. Tokens are sampled, unless `beam` or temperature 0 asks for a search.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GenerateRequest {
    /// The beginning of the text; empty by default.
    #[serde(default)]
    #[schema(default = "")]
    prompt: String,
    /// A name from /v1/models; the first language model by default.
    model: Option<String>,
    /// The maximum number of tokens to generate.
    #[schema(default = 100)]
    tokens: Option<usize>,
    /// The number of outputs.
    #[serde(default = "one")]
    #[schema(default = 1)]
    n_best: usize,
    /// The temperature of sampling; 0 takes the most probable token each time.
    #[serde(default = "unit")]
    #[schema(default = 1.0)]
    temperature: f64,
    /// Sample from the k most probable tokens only.
    top_k: Option<usize>,
    /// Sample from the most probable tokens only, up to this sum of probabilities.
    top_p: Option<f64>,
    /// The same seed gives the same text.
    #[serde(default = "seed")]
    #[schema(default = 1)]
    seed: u64,
    /// Beam search instead of sampling, with this many hypotheses.
    beam: Option<usize>,
    /// No sequence of this many tokens occurs twice.
    no_repeat_ngram: Option<usize>,
    /// The form of the attention weights; with one, each result has an explanation.
    #[serde(default)]
    #[schema(default = "none")]
    attention: AttentionForm,
    /// Send the scores before the softmax too.
    #[serde(default)]
    #[schema(default = false)]
    raw_scores: bool,
    /// List the tokens of each output, with this many of the most probable tokens at each position.
    alternatives: Option<usize>,
    /// Send server-sent events: partial, then done, or error.
    #[serde(default)]
    #[schema(default = false)]
    stream: bool,
}

fn one() -> usize {
    1
}

fn unit() -> f64 {
    1.0
}

fn seed() -> u64 {
    1
}

/// The range of temperatures, from greedy to almost uniform.
pub(crate) const TEMPERATURE: (f64, f64) = (0.0, 1000.0);
/// The range of `top_p`; the minimum is far below the probability of any most probable token.
pub(crate) const TOP_P: (f64, f64) = (1e-6, 1.0);

fn check_range(name: &str, number: f64, (least, most): (f64, f64)) -> Result<(), ApiError> {
    if number < least || number > most {
        return Err(ApiError::bad_request(format!("`{name}` must be a number from {least} to {most}")));
    }
    Ok(())
}

/// The default of `tokens`.
const TOKENS: usize = 100;

/// The generated texts.
#[derive(Serialize, ToSchema)]
pub(crate) struct GenerateResponse {
    /// The model that generated.
    model: String,
    /// The outputs, best first.
    results: Vec<GeneratedText>,
    /// The time spent in each stage.
    timings: Timings,
}

/// One output.
#[derive(Serialize, ToSchema)]
struct GeneratedText {
    /// The prompt and its continuation.
    text: String,
    /// The log-probability with the length penalty.
    score: f64,
    /// The sum over the generated tokens.
    log_probability: f64,
    /// The number of generated tokens.
    tokens: usize,
    /// Probabilities and attention weights of the whole text, prompt included, if `attention` requests them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ExplanationSchema>, nullable = false)]
    explanation: Option<Explanation>,
    /// The generated tokens, if `alternatives` requests them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<TokenSchema>>, nullable = false)]
    pieces: Option<Vec<ExplainedToken>>,
}

/// The data of an event of the stream, by its name.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum GenerateEvent {
    /// `partial`: the text of the best hypothesis.
    Partial {
        /// The text.
        text: String,
    },
    /// `done`: the last event.
    Done(GenerateResponse),
    /// `error`: the last event of a stream that failed.
    #[expect(dead_code, reason = "`sse::response` writes it; this describes it")]
    Error(ErrorBody),
}

/// Continue a prompt
#[utoipa::path(
    post, path = "/v1/generate", tag = "v1",
    request_body(content = GenerateRequest, example = json!({"prompt": "Once upon a time", "tokens": 50, "top_p": 0.9})),
    responses(
        (status = 200, description = "The texts; events if `stream` is true", content(
            (GenerateResponse = "application/json"),
            (GenerateEvent = "text/event-stream"),
        )),
        RequestErrors,
        ModelErrors,
    )
)]
pub(crate) async fn generate(
    State(state): State<Arc<AppState>>,
    Body(fields): Body<GenerateRequest>,
) -> Result<Response, ApiError> {
    let most = state.limits.tokens;
    let tokens = fields.tokens.map_or(Ok(TOKENS.min(most)), |tokens| at_most("tokens", tokens, most))?;
    let options = search_options(&state, &fields)?;
    let most = max_alternatives(&state);
    let alternatives = fields.alternatives.map(|count| at_most("alternatives", count, most)).transpose()?;
    let detail = fields.attention.detail(fields.raw_scores, alternatives)?;
    let delivery = if fields.stream { Delivery::Streaming } else { Delivery::Complete };
    let target = by_name(&state, fields.model.as_deref(), Task::Language)?;
    let Engine::Generator(generator) = &*target.loaded.engine else {
        return Err(ApiError::bad_request(format!("`model`: {} is not a language model", target.name())));
    };
    let (engine, text, bytes) = (target.loaded.engine.clone(), fields.prompt.clone(), fields.prompt.len());
    let encoded = target.off_thread(bytes, move || engine.encode(&text)).await?;
    let tokens_of_prompt =
        encoded.map_err(|error| ApiError::too_large(format!("`prompt`: {error}: make it shorter")))?;
    // Without `<bos>`.
    let options = generator
        .options(tokens_of_prompt.len() - 1, tokens, &options)
        .map_err(|error| ApiError::bad_request(format!("`prompt`, `tokens`: {error}")))?;
    let input = Input { tokens: tokens_of_prompt, text: fields.prompt, prefix: Vec::new() };
    let mut job = target.submit(vec![input], options, (detail, delivery))?;
    let model = target.name();
    if delivery == Delivery::Complete {
        let outcome = job.outcomes().await?.pop();
        return Ok(Json(GenerateResponse::new(model, outcome, &job)).into_response());
    }
    Ok(sse::response(job, move |job, update| match update? {
        JobUpdate::Partial { text, .. } => Some(sse::event("partial", &GenerateEvent::Partial { text })),
        JobUpdate::Done { outcome, .. } => {
            let response = GenerateResponse::new(model.clone(), Some(outcome), job);
            Some(sse::event("done", &GenerateEvent::Done(response)))
        }
    }))
}

impl Fields for GenerateRequest {
    fn cost(&self) -> Cost {
        Cost::Text { characters: self.prompt.chars().count(), generated: self.tokens.unwrap_or(TOKENS) }
    }
}

/// As in `heedful generate`: sampling, unless a beam or temperature 0 is requested.
fn search_options(state: &AppState, fields: &GenerateRequest) -> Result<SearchOptions, ApiError> {
    let most = state.limits.beam;
    let beam = fields.beam.map(|beam| at_most("beam", beam, most)).transpose()?;
    let sampling = Sampling {
        temperature: fields.temperature as f32,
        top_k: fields.top_k,
        top_p: fields.top_p.map(|p| p as f32),
        seed: fields.seed,
    };
    if fields.top_k == Some(0) {
        return Err(ApiError::bad_request("`top_k` must be a whole number, 1 or more"));
    }
    check_range("temperature", fields.temperature, TEMPERATURE)?;
    check_range("top_p", fields.top_p.unwrap_or(1.0), TOP_P)?;
    let is_sampled = beam.is_none() && sampling.temperature != 0.0;
    let options = SearchOptions {
        beam: beam.unwrap_or(1),
        n_best: at_most("n_best", fields.n_best, most)?,
        sampling: is_sampled.then_some(sampling),
        no_repeat_ngram: fields.no_repeat_ngram,
        length_penalty: SearchOptions::default().length_penalty,
        min_length: 0,
        ..state.search.clone()
    };
    options.check().map_err(|error| ApiError::bad_request(error.to_string()))?;
    Ok(options)
}

impl GenerateResponse {
    fn new(model: String, outcome: Option<Outcome>, job: &PendingJob) -> GenerateResponse {
        let texts: Vec<DetailedOutput> = match outcome {
            Some(Outcome::Generated(outputs)) => outputs
                .into_iter()
                .map(|output| DetailedOutput { output, explanation: None, pieces: None })
                .collect(),
            Some(Outcome::Detailed(texts)) => texts,
            _ => Vec::new(),
        };
        let result =
            |DetailedOutput { output: Output { text, hypothesis }, explanation, pieces }| GeneratedText {
                text,
                score: hypothesis.score,
                log_probability: hypothesis.log_probability,
                tokens: hypothesis.tokens.len(),
                explanation,
                pieces,
            };
        GenerateResponse { model, results: texts.into_iter().map(result).collect(), timings: job.timings() }
    }
}
