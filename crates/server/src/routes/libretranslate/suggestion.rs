//! `POST /suggest`

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::AppState;
use crate::error::{ApiError, ErrorBody};
use crate::keys::Cost;
use crate::wire::{Body, Fields, Json, RequestErrors};

/// A better translation, from somebody who knows.
#[derive(Deserialize, Serialize, ToSchema)]
pub(crate) struct SuggestRequest {
    /// The text.
    q: String,
    /// The suggested translation.
    s: String,
    /// The code of the source language.
    source: String,
    /// The code of the target language.
    target: String,
}

/// Thanks.
#[derive(Serialize, ToSchema)]
pub(crate) struct SuggestResponse {
    /// Always true.
    success: bool,
}

/// Where suggestions go: one line of JSON each. Many strangers may write, so the file has a limit.
pub(crate) struct Suggestions {
    file: PathBuf,
    writing: Mutex<()>,
}

/// Bytes of the file, after which no more are taken.
const MOST_BYTES: u64 = 100 << 20;

impl Suggestions {
    pub(crate) fn new(file: &Path) -> Suggestions {
        Suggestions { file: file.to_owned(), writing: Mutex::new(()) }
    }

    fn add(&self, suggestion: &SuggestRequest) -> Result<(), ApiError> {
        let failed =
            |error: std::io::Error| ApiError::internal(format!("the suggestion cannot be kept: {error}"));
        let line = serde_json::to_string(suggestion).map_err(|error| failed(error.into()))? + "\n";
        let _one_at_a_time = self.writing.lock();
        let mut file = OpenOptions::new().create(true).append(true).open(&self.file).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() + line.len() as u64 > MOST_BYTES {
            let message = "the file of suggestions is full: no more are taken";
            return Err(ApiError::new(StatusCode::INSUFFICIENT_STORAGE, message));
        }
        file.write_all(line.as_bytes()).map_err(failed)
    }
}

/// Suggest a better translation
#[utoipa::path(
    post, path = "/suggest", tag = "LibreTranslate",
    request_body(
        content((SuggestRequest = "application/json"), (SuggestRequest = "application/x-www-form-urlencoded")),
        example = json!({"q": "A dog runs.", "s": "Ein Hund läuft.", "source": "en", "target": "de"})
    ),
    responses(
        (status = 200, description = "It is kept", body = SuggestResponse),
        RequestErrors,
        (status = 500, description = "It cannot be written", body = ErrorBody),
        (status = 507, description = "There are too many", body = ErrorBody),
    )
)]
pub(crate) async fn suggest(
    State(state): State<Arc<AppState>>,
    Body(fields): Body<SuggestRequest>,
) -> Result<Json<SuggestResponse>, ApiError> {
    let refused =
        || ApiError::forbidden("this server takes no suggestions; --suggestions FILE makes it collect them");
    let suggestions = state.suggestions.clone().ok_or_else(refused)?;
    let written = tokio::task::spawn_blocking(move || suggestions.add(&fields)).await;
    written.map_err(|_| ApiError::internal("the suggestion cannot be kept"))??;
    Ok(Json(SuggestResponse { success: true }))
}

impl Fields for SuggestRequest {
    fn cost(&self) -> Cost {
        Cost::text(self.q.chars().count() + self.s.chars().count())
    }
}
