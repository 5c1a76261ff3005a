//! `POST /translate`

use std::sync::Arc;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::work::translations;
use crate::app::AppState;
use crate::detect::Detected;
use crate::error::ApiError;
use crate::routes::model_selection::{Languages, by_languages};
use crate::routes::tokenize::check_characters;
use crate::text::Format;
use crate::wire::{Body, Json, ModelErrors, OneOrMany, RequestErrors, Texts, at_most};

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
    /// How many more translations of each text.
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
    /// If asked for: a list for each text.
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
    post,
    path = "/translate",
    tag = "LibreTranslate",
    operation_id = "libretranslate",
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
    Body { fields, key }: Body<LibreTranslateRequest>,
) -> Result<Json<LibreTranslateResponse>, ApiError> {
    let texts = &fields.q;
    let alternatives = at_most("alternatives", fields.alternatives, state.limits.beam - 1)?;
    check_characters(&state, texts.characters())?;
    state.keys.admit(key, texts.characters())?;

    let languages = Languages::new(Some(&fields.source), Some(&fields.target));
    let (served, detected) = by_languages(&state, &languages, texts.all())?;
    let (mut best, mut others) = (Vec::new(), Vec::new());
    for mut ranks in translations(&state, served, texts, fields.format, alternatives + 1).await? {
        best.push(ranks.remove(0));
        others.push(ranks);
    }
    Ok(Json(LibreTranslateResponse {
        detected_language: detected.map(|detected| texts.shape(vec![detected; best.len()])),
        translated_text: texts.shape(best),
        alternatives: (alternatives > 0).then(|| texts.shape(others)),
    }))
}
