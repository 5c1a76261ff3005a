//! `POST /v1/classify`: labels for texts.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use heedful::explain::Explanation;
use heedful::tasks::Task;
use heedful::tasks::classify::{Classified, Classifier};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::model_selection::by_name;
use super::pending_job::{PendingJob, Timings};
use super::tokenize::{check_characters, off_thread, too_long};
use crate::app::AppState;
use crate::error::ApiError;
use crate::inference::{Delivery, Detail, Input, Job, Outcome};
use crate::models::Engine;
use crate::wire::{
    AttentionForm, Body, ExplanationSchema, Json, ModelErrors, RequestErrors, Texts, scores_kept,
};

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
    /// Where the time went.
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
    post,
    path = "/v1/classify",
    tag = "v1",
    request_body(content = ClassifyRequest, example = json!({"text": ["What a joy.", "Never again."]})),
    responses((status = 200, description = "The labels", body = ClassifyResponse), RequestErrors, ModelErrors)
)]
pub(crate) async fn classify(
    State(state): State<Arc<AppState>>,
    Body { fields, key }: Body<ClassifyRequest>,
) -> Result<Json<ClassifyResponse>, ApiError> {
    let texts = fields.text;
    let detail = match (fields.attention, scores_kept(fields.raw_scores, fields.attention)?) {
        (AttentionForm::None, _) => Detail::Text,
        (form, scores) => Detail::Explained { weights: form.into(), scores, alternatives: None },
    };
    let served = by_name(&state, fields.model.as_deref(), Task::Classify)?;
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
        Ok(Input { tokens, text, prefix: Vec::new() })
    };
    let read = move || given.into_iter().enumerate().map(input).collect::<Result<_, ApiError>>();
    let all: Vec<Input> = off_thread(&state, bytes, read).await??;
    let has_tokens: Vec<bool> = all.iter().map(|input| !input.tokens.is_empty()).collect();
    let job = Job {
        inputs: all.into_iter().filter(|input| !input.tokens.is_empty()).collect(),
        options: Arc::new(state.search.clone()),
        detail,
        delivery: Delivery::Complete,
    };
    let mut job = PendingJob::submit(&state, served, &loaded, job)?;
    let mut outcomes = job.outcomes().await?.into_iter();
    let Engine::Classifier(classifier) = &*loaded.engine else {
        return Err(ApiError::bad_request(format!("`model`: {} is no classifier", served.spec.name)));
    };
    let result = |has_tokens: bool| match has_tokens.then(|| outcomes.next()).flatten() {
        Some(Outcome::Classified(classified, explanation)) => {
            Some(Classification { explanation, ..Classification::new(classifier, &classified) })
        }
        _ => None,
    };
    Ok(Json(ClassifyResponse {
        model: served.spec.name.clone(),
        results: has_tokens.into_iter().map(result).collect(),
        timings: job.timings(),
    }))
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
