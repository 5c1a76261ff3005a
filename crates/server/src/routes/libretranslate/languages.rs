//! `GET /languages`, `POST /detect` and `GET /frontend/settings`

use std::sync::Arc;

use axum::extract::State;
use heedful::tasks::Task;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::files::ENDINGS;
use crate::app::AppState;
use crate::detect::{self, Detected};
use crate::keys::Cost;
use crate::languages;
use crate::wire::{Body, Fields, Json, RequestErrors, Texts};

/// A language and its target languages.
#[derive(Serialize, ToSchema)]
pub(crate) struct Language {
    /// Its code.
    #[schema(example = "en")]
    code: String,
    /// Its name in English.
    #[schema(example = "English")]
    name: String,
    /// The codes of its target languages; empty for a language that is only a target.
    targets: Vec<String>,
}

/// List the languages and their targets
#[utoipa::path(
    get, path = "/languages", tag = "LibreTranslate",
    responses((status = 200, description = "The languages", body = Vec<Language>))
)]
pub(crate) async fn get_languages(State(state): State<Arc<AppState>>) -> Json<Vec<Language>> {
    let specs: Vec<_> = state.models.with_task(Task::Translate).map(|served| &served.spec).collect();
    let sorted = |mut codes: Vec<String>| {
        codes.sort_unstable();
        codes.dedup();
        codes
    };
    let sources = sorted(specs.iter().map(|spec| spec.source.clone()).collect());
    let all_targets = sorted(specs.iter().map(|spec| spec.target.clone()).collect());
    // Clients look up the names of target languages here too.
    let only_targets: Vec<String> = all_targets.into_iter().filter(|code| !sources.contains(code)).collect();
    let language = |code: String| {
        let of_source = specs.iter().filter(|spec| spec.source == code);
        let targets = sorted(of_source.map(|spec| spec.target.clone()).collect());
        Language { name: languages::name_or_code(&code).to_owned(), code, targets }
    };
    Json(sources.into_iter().chain(only_targets).map(language).collect())
}

/// List the languages, for clients that post
#[utoipa::path(
    post, path = "/languages", tag = "LibreTranslate",
    responses((status = 200, description = "The languages", body = Vec<Language>))
)]
pub(crate) async fn post_languages(state: State<Arc<AppState>>) -> Json<Vec<Language>> {
    get_languages(state).await
}

/// Texts in an unknown language.
#[derive(Deserialize, ToSchema)]
pub(crate) struct DetectRequest {
    /// One text, or an array of texts, which are joined.
    q: Texts,
}

/// Detect the language of a text
#[utoipa::path(
    post, path = "/detect", tag = "LibreTranslate",
    request_body(
        content((DetectRequest = "application/json"), (DetectRequest = "application/x-www-form-urlencoded")),
        example = json!({"q": "A dog runs."})
    ),
    responses(
        (status = 200, description = "The most probable language; empty if there is none", body = Vec<Detected>),
        RequestErrors,
    )
)]
pub(crate) async fn detect(Body(DetectRequest { q }): Body<DetectRequest>) -> Json<Vec<Detected>> {
    let sample: String = q.all().join("\n").chars().take(5_000).collect();
    Json(detect::detect(&sample).into_iter().collect())
}

impl Fields for DetectRequest {
    fn cost(&self) -> Cost {
        Cost::text(self.q.characters())
    }
}

/// The settings of LibreTranslate's own web page.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FrontendSettings {
    /// Whether there are API keys.
    api_keys: bool,
    /// Whether a request needs one.
    key_required: bool,
    /// The most characters of a request.
    char_limit: usize,
    /// Whether files are translated: always.
    files_translation: bool,
    /// The supported file extensions.
    supported_files_format: Vec<String>,
    /// Whether translations can be suggested: never.
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
    get, path = "/frontend/settings", tag = "LibreTranslate",
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
        suggestions: false,
        frontend_timeout: 500,
        language: FrontendLanguages {
            source: first.map(|spec| language(&spec.source)),
            target: first.map(|spec| language(&spec.target)),
        },
    })
}
