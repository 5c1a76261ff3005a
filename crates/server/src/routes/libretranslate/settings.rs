//! `GET /frontend/settings`

use std::sync::Arc;

use axum::extract::State;
use heedful::tasks::Task;
use serde::Serialize;
use utoipa::ToSchema;

use super::files::ENDINGS;
use crate::app::AppState;
use crate::languages;
use crate::wire::Json;

/// What LibreTranslate's own page needs to know.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FrontendSettings {
    /// Whether there are API keys.
    api_keys: bool,
    /// Whether a request needs one.
    key_required: bool,
    /// The most characters of a request.
    char_limit: usize,
    /// Files are translated.
    files_translation: bool,
    /// The endings of their names.
    supported_files_format: Vec<String>,
    /// Whether suggestions are collected.
    suggestions: bool,
    /// Milliseconds between the last keystroke and the request.
    frontend_timeout: usize,
    /// The languages that are selected first.
    language: FrontendLanguages,
}

/// The languages that are selected first.
#[derive(Serialize, ToSchema)]
struct FrontendLanguages {
    /// Null if there is no translator.
    #[schema(required)]
    source: Option<FrontendLanguage>,
    /// Null if there is no translator.
    #[schema(required)]
    target: Option<FrontendLanguage>,
}

/// A language.
#[derive(Serialize, ToSchema)]
struct FrontendLanguage {
    /// Its code.
    code: String,
    /// Its name in English.
    name: String,
}

/// Settings of LibreTranslate's page
#[utoipa::path(
    get,
    path = "/frontend/settings",
    tag = "LibreTranslate",
    responses((status = 200, description = "The settings", body = FrontendSettings))
)]
pub(crate) async fn settings(State(state): State<Arc<AppState>>) -> Json<FrontendSettings> {
    let first = state.models.with_task(Task::Translate).next().map(|served| &served.spec);
    let language = |code: &String| FrontendLanguage {
        code: code.clone(),
        name: languages::name_or_code(code).to_owned(),
    };
    Json(FrontendSettings {
        api_keys: state.keys.are_required(),
        key_required: state.keys.are_required(),
        char_limit: state.limits.characters,
        files_translation: true,
        supported_files_format: ENDINGS.map(str::to_owned).to_vec(),
        suggestions: state.suggestions.is_some(),
        frontend_timeout: 500,
        language: FrontendLanguages {
            source: first.map(|spec| language(&spec.source)),
            target: first.map(|spec| language(&spec.target)),
        },
    })
}
