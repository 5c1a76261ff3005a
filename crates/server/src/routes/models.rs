//! `/v1/models` and `/v1/reload`.

use std::sync::Arc;

use axum::extract::State;
use heedful::tasks::Task;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::target::unknown;
use crate::app::AppState;
use crate::error::ApiError;
use crate::keys::Cost;
use crate::models::{Engine, ServedModel};
use crate::wire::{Body, Fields, Json, KeyErrors, RequestErrors};

/// A served model.
#[derive(Serialize, ToSchema)]
pub(crate) struct ModelInfo {
    /// The name that requests use.
    #[schema(example = "en-de")]
    name: String,
    /// The code of the source language of a translator; und if it is unknown.
    #[schema(required)]
    source: Option<String>,
    /// The code of the target language of a translator; und if it is unknown.
    #[schema(required)]
    target: Option<String>,
    /// The task, which selects the route: /v1/translate, /v1/classify, /v1/generate or /v1/fill.
    task: ServedTask,
    /// The family of its layers; null if it does not come from a folder.
    #[schema(required, example = "transformer")]
    family: Option<String>,
    /// The number of its parameters.
    parameters: usize,
    /// A few example inputs from its training run.
    examples: Vec<String>,
}

/// The task of a model.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ServedTask {
    Translate,
    Classify,
    Generate,
    Fill,
}

/// List the models
#[utoipa::path(
    get, path = "/v1/models", tag = "v1",
    responses((status = 200, description = "The models", body = Vec<ModelInfo>), KeyErrors)
)]
pub(crate) async fn models(State(state): State<Arc<AppState>>) -> Json<Vec<ModelInfo>> {
    Json(state.models.served.iter().map(ModelInfo::new).collect())
}

impl ModelInfo {
    fn new(served: &ServedModel) -> ModelInfo {
        let (loaded, spec) = (served.current(), &served.spec);
        let is_translator = served.task == Task::Translate;
        ModelInfo {
            name: spec.name.clone(),
            source: is_translator.then(|| spec.source.clone()),
            target: is_translator.then(|| spec.target.clone()),
            task: match *loaded.engine {
                Engine::Translator(_) => ServedTask::Translate,
                Engine::Classifier(_) => ServedTask::Classify,
                Engine::Generator(_) => ServedTask::Generate,
                Engine::Filler(_) => ServedTask::Fill,
            },
            family: spec.origin.family(),
            parameters: loaded.engine.model().params().count(),
            examples: served.examples.clone(),
        }
    }
}

/// Which models to reload.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReloadRequest {
    /// A name from /v1/models; all models by default.
    model: Option<String>,
}

/// The reloaded models.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReloadResponse {
    /// Their names.
    reloaded: Vec<String>,
}

/// Reload models; needs an admin key
///
/// A model that cannot be loaded keeps serving in its old version.
#[utoipa::path(
    post, path = "/v1/reload", tag = "v1",
    request_body = Option<ReloadRequest>,
    responses(
        (status = 200, description = "All models were loaded", body = ReloadResponse),
        RequestErrors,
        (status = 404, description = "There is no such model", body = crate::error::ErrorBody),
        (status = 500, description = "A model cannot be loaded", body = crate::error::ErrorBody),
    )
)]
pub(crate) async fn reload(
    State(state): State<Arc<AppState>>,
    Body(ReloadRequest { model: wanted }): Body<ReloadRequest>,
) -> Result<Json<ReloadResponse>, ApiError> {
    if let Some(name) = &wanted
        && state.models.named(name).is_none()
    {
        return Err(unknown(name));
    }
    let models = state.models.clone();
    let reload = move || {
        let is_wanted = |served: &&ServedModel| wanted.as_ref().is_none_or(|name| *name == served.spec.name);
        let (mut reloaded, mut failures) = (Vec::new(), Vec::new());
        for served in models.served.iter().filter(is_wanted) {
            match served.reload() {
                Ok(()) => reloaded.push(served.spec.name.clone()),
                Err(error) => failures.push(error.to_string()),
            }
        }
        (reloaded, failures)
    };
    let panicked = |_| ApiError::internal("loading the model failed");
    let (reloaded, failures) = tokio::task::spawn_blocking(reload).await.map_err(panicked)?;
    if failures.is_empty() {
        return Ok(Json(ReloadResponse { reloaded }));
    }
    Err(ApiError::internal(format!("{}; the old model keeps serving", failures.join("; "))))
}

impl Fields for ReloadRequest {
    fn cost(&self) -> Cost {
        Cost::Administration
    }
}
