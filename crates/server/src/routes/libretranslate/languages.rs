//! `GET /languages`

use std::sync::Arc;

use axum::extract::State;
use heedful::tasks::Task;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::languages;
use crate::wire::Json;

/// A language and what it can be translated into.
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
    get,
    path = "/languages",
    tag = "LibreTranslate",
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
    // Clients search the names of targets here too.
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
    post,
    path = "/languages",
    tag = "LibreTranslate",
    responses((status = 200, description = "The languages", body = Vec<Language>))
)]
pub(crate) async fn post_languages(state: State<Arc<AppState>>) -> Json<Vec<Language>> {
    get_languages(state).await
}
