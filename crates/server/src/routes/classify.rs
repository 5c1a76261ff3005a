//! `POST /v1/classify`: labels for texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use heedful::explain::Explanation;
use heedful::tasks::Task;
use heedful::tasks::classify::{Classified, Classifier};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::pending_job::Timings;
use super::target::by_name;
use crate::app::AppState;
use crate::error::ApiError;
use crate::inference::{Delivery, Outcome};
use crate::keys::Cost;
use crate::models::Engine;
use crate::wire::{AttentionForm, Body, ExplanationSchema, Fields, Json, ModelErrors, RequestErrors, Texts};

/// Texts to classify.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClassifyRequest {
    /// One text, or an array of texts.
    text: Texts,
    /// A name from /v1/models; the first classifier by default.
    model: Option<String>,
    /// The form of the attention weights; with one, each result has an explanation.
    #[serde(default)]
    #[schema(default = "none")]
    attention: AttentionForm,
    /// Send the scores before the softmax too.
    #[serde(default)]
    #[schema(default = false)]
    raw_scores: bool,
}

/// The label of each text.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClassifyResponse {
    /// The model that classified.
    model: String,
    /// One for each text; null for a blank text.
    results: Vec<Option<Classification>>,
    /// The time spent in each stage.
    timings: Timings,
}

/// The label of a text.
#[derive(Serialize, ToSchema)]
struct Classification {
    /// The most probable label.
    #[schema(example = "good")]
    label: String,
    /// Its probability.
    probability: f32,
    /// The probability of every label.
    probabilities: BTreeMap<String, f32>,
    /// The words of the text with the attention that each received.
    words: Vec<AttendedWord>,
    /// Tokens and attention weights, if `attention` asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ExplanationSchema>, nullable = false)]
    explanation: Option<Box<Explanation>>,
}

/// A word and the attention that it received.
#[derive(Serialize, ToSchema)]
struct AttendedWord {
    /// The word.
    word: String,
    /// Its attention weight.
    attention: f32,
}

/// Classify texts
#[utoipa::path(
    post, path = "/v1/classify", tag = "v1",
    request_body(content = ClassifyRequest, example = json!({"text": ["What a joy.", "Never again."]})),
    responses((status = 200, description = "The labels", body = ClassifyResponse), RequestErrors, ModelErrors)
)]
pub(crate) async fn classify(
    State(state): State<Arc<AppState>>,
    Body(fields): Body<ClassifyRequest>,
) -> Result<Json<ClassifyResponse>, ApiError> {
    let detail = fields.attention.detail(fields.raw_scores, None)?;
    let target = by_name(&state, fields.model.as_deref(), Task::Classify)?;
    let inputs = target.texts(&fields.text).await?;
    let has_tokens: Vec<bool> = inputs.iter().map(|input| !input.tokens.is_empty()).collect();
    let inputs = inputs.into_iter().filter(|input| !input.tokens.is_empty()).collect();
    let mut job = target.submit(inputs, state.search.clone(), (detail, Delivery::Complete))?;
    let mut outcomes = job.outcomes().await?.into_iter();
    let Engine::Classifier(classifier) = &*target.loaded.engine else {
        return Err(ApiError::bad_request(format!("`model`: {} is not a classifier", target.name())));
    };
    let result = |has_tokens: bool| match has_tokens.then(|| outcomes.next()).flatten() {
        Some(Outcome::Classified(classified, explanation)) => {
            Some(Classification { explanation, ..Classification::new(classifier, &classified) })
        }
        _ => None,
    };
    let results = has_tokens.into_iter().map(result).collect();
    Ok(Json(ClassifyResponse { model: target.name(), results, timings: job.timings() }))
}

impl Fields for ClassifyRequest {
    fn cost(&self) -> Cost {
        Cost::text(self.text.characters())
    }
}

impl Classification {
    fn new(classifier: &Classifier, classified: &Classified) -> Classification {
        let labels = classifier.labels();
        let word = |text: &str, attention| AttendedWord { word: text.to_owned(), attention };
        Classification {
            label: labels.name(classified.label()).to_owned(),
            probability: classified.probability(),
            probabilities: labels
                .names()
                .iter()
                .cloned()
                .zip(classified.probabilities.iter().copied())
                .collect(),
            words: classified.words.iter().map(|found| word(&found.text, found.attention)).collect(),
            explanation: None,
        }
    }
}
