//! `POST /translate`, and the translations of texts and pages for it and for files.

use std::sync::Arc;

use axum::extract::State;
use heedful::decode::SearchOptions;
use heedful::explain::{ExplainedOutput, RawScores, WeightForm};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::AppState;
use crate::detect::Detected;
use crate::error::ApiError;
use crate::inference::{Delivery, Detail, Input, Outcome};
use crate::keys::Cost;
use crate::routes::pending_job::PendingJob;
use crate::routes::target::{Languages, Target, by_languages};
use crate::text::{Format, Layout, WordLinks};
use crate::wire::{Body, Fields, Json, ModelErrors, OneOrMany, RequestErrors, Texts, at_most};

/// Texts to translate. Other fields that LibreTranslate's clients send are ignored.
#[derive(Deserialize, ToSchema)]
pub(crate) struct LibreTranslateRequest {
    /// One text, or an array of texts.
    q: Texts,
    /// The code of the source language, or auto to detect it.
    source: String,
    /// The code of the target language.
    target: String,
    /// The format of the texts.
    #[serde(default)]
    #[schema(default = "text")]
    format: Format,
    /// The number of additional translations of each text.
    #[serde(default)]
    #[schema(default = 0)]
    alternatives: usize,
}

/// The translations, in the form of `q`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LibreTranslateResponse {
    /// The translation of each text.
    translated_text: OneOrMany<String>,
    /// A list for each text, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    alternatives: Option<OneOrMany<Vec<String>>>,
    /// Only for source auto.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    detected_language: Option<OneOrMany<Detected>>,
}

/// Translate, as LibreTranslate does
#[utoipa::path(
    post, path = "/translate", tag = "LibreTranslate", operation_id = "libretranslate",
    request_body(
        content((LibreTranslateRequest = "application/json"), (LibreTranslateRequest = "application/x-www-form-urlencoded")),
        example = json!({"q": "A dog runs.", "source": "en", "target": "de"})
    ),
    responses(
        (status = 200, description = "The translations", body = LibreTranslateResponse),
        RequestErrors,
        ModelErrors,
    )
)]
pub(crate) async fn translate(
    State(state): State<Arc<AppState>>,
    Body(fields): Body<LibreTranslateRequest>,
) -> Result<Json<LibreTranslateResponse>, ApiError> {
    let texts = &fields.q;
    let alternatives = at_most("alternatives", fields.alternatives, state.limits.beam - 1)?;
    let languages = Languages::new(Some(&fields.source), Some(&fields.target));
    let (target, detected) = by_languages(&state, &languages, texts.all())?;
    let (mut best, mut others) = (Vec::new(), Vec::new());
    for mut ranks in translations(&target, texts, fields.format, alternatives + 1).await? {
        best.push(ranks.remove(0));
        others.push(ranks);
    }
    Ok(Json(LibreTranslateResponse {
        detected_language: detected.map(|detected| texts.shape(vec![detected; best.len()])),
        translated_text: texts.shape(best),
        alternatives: (alternatives > 0).then(|| texts.shape(others)),
    }))
}

impl Fields for LibreTranslateRequest {
    fn cost(&self) -> Cost {
        Cost::text(self.q.characters())
    }
}

/// The `n_best` translations of each text, best first.
pub(super) async fn translations(
    target: &Target<'_>,
    texts: &Texts,
    format: Format,
    n_best: usize,
) -> Result<Vec<Vec<String>>, ApiError> {
    let (layouts, inputs) = target.sentences(texts, format).await?;
    // Only sentences with tags are aligned, because alignment takes another forward pass.
    let has_tags: Vec<bool> = layouts.iter().flat_map(Layout::has_tags).collect();
    let (mut tagged, mut plain) = (Vec::new(), Vec::new());
    for (input, &has_tags) in inputs.into_iter().zip(&has_tags) {
        if has_tags { tagged.push(input) } else { plain.push(input) }
    }
    let search = &target.state.search;
    let submit = |inputs: Vec<Input>, detail| {
        let options = SearchOptions { n_best, beam: search.beam.max(n_best), ..search.clone() };
        let is_empty = inputs.is_empty();
        (!is_empty).then(|| target.submit(inputs, options, (detail, Delivery::Complete))).transpose()
    };
    // Both jobs are submitted before either is awaited.
    let aligned =
        Detail::Explained { weights: WeightForm::None, scores: RawScores::Omit, alternatives: None };
    let (tagged, plain) = (submit(tagged, aligned)?, submit(plain, Detail::Text)?);
    let (mut plain, mut tagged) = (outcomes(plain).await?.into_iter(), outcomes(tagged).await?.into_iter());
    let outcome = |has_tags: bool| if has_tags { tagged.next() } else { plain.next() };
    let outputs: Vec<_> =
        has_tags.into_iter().map(outcome).map(|outcome| outcome.map(outputs).unwrap_or_default()).collect();
    let bytes = texts.all().iter().map(String::len).sum();
    target.off_thread(bytes, move || joined(&layouts, &outputs, n_best)).await
}

/// One output for a sentence.
struct SentenceOutput {
    text: String,
    /// Only for sentences with tags.
    links: Option<WordLinks>,
}

async fn outcomes(job: Option<PendingJob>) -> Result<Vec<Outcome>, ApiError> {
    match job {
        Some(mut job) => job.outcomes().await,
        None => Ok(Vec::new()),
    }
}

fn outputs(outcome: Outcome) -> Vec<SentenceOutput> {
    match outcome {
        Outcome::Generated(outputs) => {
            outputs.into_iter().map(|output| SentenceOutput { text: output.text, links: None }).collect()
        }
        // A sentence without tokens is returned unchanged.
        Outcome::Explained(explanation) if explanation.outputs.is_empty() => {
            vec![SentenceOutput { text: explanation.source.text, links: None }]
        }
        Outcome::Explained(explanation) => {
            let source = &explanation.source;
            let output = |output: &ExplainedOutput| SentenceOutput {
                text: output.text.clone(),
                links: Some(WordLinks::aligned(source, output)),
            };
            explanation.outputs.iter().map(output).collect()
        }
        Outcome::Detailed(_) | Outcome::Classified(..) | Outcome::Filled(..) => Vec::new(),
    }
}

/// For each text its translation of each rank; a sentence with fewer outputs repeats its last one.
fn joined<'o>(layouts: &[Layout], outputs: &'o [Vec<SentenceOutput>], n_best: usize) -> Vec<Vec<String>> {
    let mut rest = outputs;
    let mut texts = Vec::with_capacity(layouts.len());
    for layout in layouts {
        let (sentences, others) = rest.split_at(layout.sentences.len());
        rest = others;
        let of_rank = |rank: usize| {
            let chosen = sentences.iter().map(|outputs| outputs.get(rank).or(outputs.last()));
            let output = |output: &'o SentenceOutput| (output.text.as_str(), output.links.clone());
            let (outputs, links): (Vec<&str>, Vec<_>) =
                chosen.map(|chosen| chosen.map(output).unwrap_or_default()).unzip();
            layout.join(&outputs, &links)
        };
        texts.push((0..n_best).map(of_rank).collect());
    }
    texts
}
