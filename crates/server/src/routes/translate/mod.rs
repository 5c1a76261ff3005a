//! `POST /v1/translate`: translations with scores, alignments and attention weights, as one response or as a
//! stream.

mod assembly;
mod prefix;

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use heedful::decode::SearchOptions;
use heedful::explain::RawScores;
use heedful::models::{HeadError, HeadName};
use heedful::tasks::Task;
use serde::Deserialize;
use utoipa::ToSchema;

use self::assembly::{Assembly, TranslateEvent, TranslateResponse};
use super::pending_job::{JobUpdate, PendingJob};
use super::sse;
use super::target::{Languages, Source, Target, by_languages, by_name};
use crate::app::AppState;
use crate::detect::{Detected, detect_among};
use crate::error::ApiError;
use crate::inference::{Delivery, Detail, Input, MAX_WEIGHTS};
use crate::keys::Cost;
use crate::models::Engine;
use crate::text::Format;
use crate::wire::{AttentionForm, Body, Fields, Json, ModelErrors, RequestErrors, Texts, at_most};

/// Texts to translate. Without `model`, `source` and `target` select one.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TranslateRequest {
    /// One text, or an array of texts.
    text: Texts,
    /// A name from /v1/models; the first that fits the languages by default.
    model: Option<String>,
    /// The code of the source language, or auto to detect it.
    source: Option<String>,
    /// The code of the target language.
    target: Option<String>,
    /// Outputs for each sentence.
    #[schema(default = 1)]
    n_best: Option<usize>,
    /// Hypotheses of the beam search; that of the server by default, and at least n_best.
    beam: Option<usize>,
    /// A forced prefix of the translations: one text, or an array with one for each text.
    prefix: Option<Texts>,
    /// Heads whose output is set to zero, to study their effect: one name such as decoder.0.cross.3, or an
    /// array of names.
    without_heads: Option<Texts>,
    /// For each token of an output, this many of the most probable tokens at its position.
    #[serde(default)]
    #[schema(default = 0)]
    alternatives: usize,
    /// The form of the attention weights.
    #[serde(default)]
    #[schema(default = "none")]
    attention: AttentionForm,
    /// Send the scores before the softmax too.
    #[serde(default)]
    #[schema(default = false)]
    raw_scores: bool,
    /// Send server-sent events: partial, sentence, then done, or error.
    #[serde(default)]
    #[schema(default = false)]
    stream: bool,
}

/// Translate, with scores, alignments and attention
#[utoipa::path(
    post, path = "/v1/translate", tag = "v1",
    request_body(content = TranslateRequest, example = json!({"text": "A dog runs.", "n_best": 3, "attention": "rows"})),
    responses(
        (status = 200, description = "The translations; events if `stream` is true", content(
            (TranslateResponse = "application/json"),
            (TranslateEvent = "text/event-stream"),
        )),
        RequestErrors,
        ModelErrors,
    )
)]
pub(crate) async fn translate(
    State(state): State<Arc<AppState>>,
    Body(fields): Body<TranslateRequest>,
) -> Result<Response, ApiError> {
    let mut options = search_options(&state, &fields)?;
    let alternatives = Some(at_most("alternatives", fields.alternatives, max_alternatives(&state))?);
    let scores = fields.attention.scores_kept(fields.raw_scores)?;
    let (target, detected) = select(&state, &fields)?;
    let (layouts, mut inputs) = target.sentences(&fields.text, Format::Text).await?;
    let engine = &target.loaded.engine;
    if let Some(prefixes) = &fields.prefix {
        prefix::add(engine, prefixes, (&layouts, &mut inputs))?;
    }
    if fields.attention != AttentionForm::None {
        // Scores double the number of values.
        let kinds = if scores == RawScores::Include { 2 } else { 1 };
        check_weights(engine, &inputs, kinds * options.n_best)?;
    }
    if let Some(names) = &fields.without_heads {
        options.without_heads = without_heads(engine, names)?;
    }
    let detail = Detail::Explained { weights: fields.attention.into(), scores, alternatives };
    let delivery = if fields.stream { Delivery::Streaming } else { Delivery::Complete };
    let job = target.submit(inputs, options, (detail, delivery))?;
    let assembly = Assembly::new(target.name(), layouts, detected);
    match delivery {
        Delivery::Complete => complete(job, assembly).await,
        Delivery::Streaming => Ok(stream(job, assembly)),
    }
}

impl Fields for TranslateRequest {
    fn cost(&self) -> Cost {
        let prefixes = self.prefix.as_ref().map_or(0, Texts::characters);
        Cost::text(self.text.characters() + prefixes)
    }
}

/// The maximum number of alternatives to a token or to an output.
pub(crate) fn max_alternatives(state: &AppState) -> usize {
    state.limits.beam.saturating_sub(1)
}

/// Refuses texts whose response would have too many attention weights, which grow with the square of a
/// sentence's length.
fn check_weights(engine: &Engine, inputs: &[Input], times: usize) -> Result<(), ApiError> {
    let Engine::Translator(translator) = engine else { return Ok(()) };
    // A translation is rarely more than 1.5 times as long as its source.
    let of_sentence = |source: usize| translator.attention_weights(source, source + source / 2 + 10);
    let weights = inputs.iter().map(|input| of_sentence(input.tokens.len()).saturating_mul(times));
    let weights = weights.fold(0_usize, usize::saturating_add);
    if weights > MAX_WEIGHTS {
        return Err(ApiError::too_large(format!(
            "the response would have about {weights} attention weights and scores, and {MAX_WEIGHTS} are allowed: send less at a time, or ask \
             for `attention` none"
        )));
    }
    Ok(())
}

fn search_options(state: &AppState, fields: &TranslateRequest) -> Result<SearchOptions, ApiError> {
    let most = state.limits.beam;
    let n_best = at_most("n_best", fields.n_best.unwrap_or(1), most)?;
    let beam = fields.beam.map(|beam| at_most("beam", beam, most)).transpose()?;
    let beam = beam.unwrap_or_else(|| state.search.beam.max(n_best));
    let options = SearchOptions { n_best, beam, ..state.search.clone() };
    options.check().map_err(|error| ApiError::bad_request(format!("`beam`, `n_best`: {error}")))?;
    Ok(options)
}

/// The heads to remove: they must exist in the model, and each is listed once.
fn without_heads(engine: &Engine, names: &Texts) -> Result<Vec<HeadName>, ApiError> {
    let Engine::Translator(translator) = engine else { return Ok(Vec::new()) };
    let refuse = |error: HeadError| ApiError::bad_request(format!("`without_heads`: {error}"));
    let named = names.all().iter().map(|name| name.parse::<HeadName>());
    let named: Vec<HeadName> = named.collect::<Result<_, _>>().map_err(refuse)?;
    translator.model().check_heads(&named).map_err(refuse)?;
    // In the order of the model, so that equal sets are decoded together.
    Ok(translator.model().heads().into_iter().filter(|head| named.contains(head)).collect())
}

/// The model by name, or by languages.
fn select<'s>(
    state: &'s AppState,
    fields: &TranslateRequest,
) -> Result<(Target<'s>, Option<Detected>), ApiError> {
    let languages = Languages::new(fields.source.as_deref(), fields.target.as_deref());
    let texts = fields.text.all();
    let Some(name) = fields.model.as_deref() else { return by_languages(state, &languages, texts) };
    let target = by_name(state, Some(name), Task::Translate)?;
    let spec = &target.served.spec;
    if !languages.fit(target.served) {
        return Err(ApiError::bad_request(format!(
            "`model`: {name} translates from {} to {}",
            spec.source, spec.target
        )));
    }
    let detected = match languages.source {
        Source::Auto => detect_among(&texts.join("\n"), &[&spec.source]),
        Source::Any | Source::Code(_) => None,
    };
    Ok((target, detected))
}

async fn complete(mut job: PendingJob, mut assembly: Assembly) -> Result<Response, ApiError> {
    while let Some(update) = job.next().await? {
        if let JobUpdate::Done { input, outcome } = update {
            assembly.put(input, outcome);
        }
    }
    Ok(Json(assembly.response(job.timings())).into_response())
}

fn stream(job: PendingJob, mut assembly: Assembly) -> Response {
    sse::response(job, move |job, update| {
        Some(match update {
            Some(JobUpdate::Partial { input, text }) => sse::event("partial", &assembly.partial(input, text)),
            Some(JobUpdate::Done { input, outcome }) => {
                assembly.put(input, outcome);
                sse::event("sentence", &assembly.sentence(input))
            }
            None => sse::event("done", &TranslateEvent::Done(assembly.response(job.timings()))),
        })
    })
}
