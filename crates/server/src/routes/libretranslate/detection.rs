//! `POST /detect`

use std::sync::Arc;

use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::detect::{self, Detected};
use crate::error::ApiError;
use crate::routes::tokenize::check_characters;
use crate::wire::{Body, Json, RequestErrors, Texts};

/// Texts in an unknown language.
#[derive(Deserialize, ToSchema)]
pub(crate) struct DetectRequest {
    /// One text, or an array of texts, which are taken together.
    q: Texts,
}

/// Detect the language of a text
#[utoipa::path(
    post,
    path = "/detect",
    tag = "LibreTranslate",
    request_body(
        content((DetectRequest = "application/json"), (DetectRequest = "application/x-www-form-urlencoded")),
        example = json!({"q": "A dog runs."})
    ),
    responses(
        (status = 200, description = "The most probable language; empty if there is none", body = Vec<Detected>),
        RequestErrors,
    )
)]
pub(crate) async fn detect(
    State(state): State<Arc<AppState>>,
    Body { fields, key }: Body<DetectRequest>,
) -> Result<Json<Vec<Detected>>, ApiError> {
    let texts = fields.q;
    check_characters(&state, texts.characters())?;
    state.keys.admit(key, texts.characters())?;
    let sample: String = texts.all().join("\n").chars().take(5_000).collect();
    Ok(Json(detect::detect(&sample).into_iter().collect()))
}
