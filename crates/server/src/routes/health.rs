//! `/health`: whether the server is alive, and whether it wants requests. `/v2`: the same for KServe and its clients.
//!
//! ```text
//!             live   ready
//! loading     200    503     models are being read
//! ready       200    200
//! draining    200    503     SIGTERM came: requests are answered, and others should take the next ones
//! ```

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::error::ApiError;
use crate::front::{Front, Phase};
use crate::wire::Json;

/// A sign of life.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always ok.
    #[schema(example = "ok")]
    status: &'static str,
}

/// Whether requests should be sent here.
#[derive(Serialize, ToSchema)]
pub(crate) struct Readiness {
    /// `ready`, `loading` or `draining`.
    #[schema(example = "ready")]
    status: &'static str,
    /// Why not, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
}

/// KServe's sign of life.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerLive {
    /// Always true.
    live: bool,
}

/// KServe's word for readiness.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServerReady {
    /// Whether requests should be sent here.
    ready: bool,
}

/// KServe's word for the readiness of a model.
#[derive(Serialize, ToSchema)]
pub(crate) struct ModelReady {
    /// Its name.
    #[schema(example = "en-de")]
    name: String,
    /// Whether requests for it should be sent here.
    ready: bool,
}

/// Whether the server is alive
#[utoipa::path(
    get,
    path = "/health",
    tag = "service",
    responses((status = 200, description = "It is", body = Health))
)]
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether the server is alive: if not, restart it
#[utoipa::path(
    get,
    path = "/health/live",
    tag = "service",
    responses((status = 200, description = "It is", body = Health))
)]
pub(crate) async fn live() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether requests should be sent here
#[utoipa::path(
    get,
    path = "/health/ready",
    tag = "service",
    responses(
        (status = 200, description = "They should", body = Readiness),
        (status = 503, description = "Models are being loaded, or the server is about to end", body = Readiness)
    )
)]
pub(crate) async fn ready(State(state): State<Arc<AppState>>) -> Response {
    readiness(&state.front)
}

/// Whether the server is alive, for KServe
#[utoipa::path(
    get,
    path = "/v2/health/live",
    tag = "service",
    responses((status = 200, description = "It is", body = ServerLive))
)]
pub(crate) async fn kserve_live() -> Json<ServerLive> {
    Json(ServerLive { live: true })
}

/// Whether requests should be sent here, for KServe
#[utoipa::path(
    get,
    path = "/v2/health/ready",
    tag = "service",
    responses(
        (status = 200, description = "They should", body = ServerReady),
        (status = 503, description = "Models are being loaded, or the server is about to end", body = ServerReady)
    )
)]
pub(crate) async fn kserve_ready(State(state): State<Arc<AppState>>) -> Response {
    kserve_readiness(&state.front)
}

/// Whether requests for a model should be sent here, for KServe
#[utoipa::path(
    get,
    path = "/v2/models/{name}/ready",
    tag = "service",
    params(("name" = String, Path, description = "A name from /v1/models")),
    responses(
        (status = 200, description = "They should", body = ModelReady),
        (status = 404, description = "There is no such model", body = crate::error::ErrorBody),
        (status = 503, description = "The server is about to end", body = ModelReady)
    )
)]
pub(crate) async fn kserve_model(State(state): State<Arc<AppState>>, Path(name): Path<String>) -> Response {
    if state.models.named(&name).is_none() {
        let name: String = name.chars().take(100).collect();
        return ApiError::not_found(format!("there is no model `{name}`; /v1/models lists them"))
            .into_response();
    }
    let ready = state.front.phase() == Phase::Ready;
    answer(ready, Json(ModelReady { name, ready }))
}

pub(crate) fn readiness(front: &Front) -> Response {
    let readiness = match front.phase() {
        Phase::Loading => Readiness { status: "loading", error: Some("the models are being loaded") },
        Phase::Ready => Readiness { status: "ready", error: None },
        Phase::Draining => {
            Readiness { status: "draining", error: Some("this server is about to end: use another one") }
        }
    };
    answer(readiness.error.is_none(), Json(readiness))
}

pub(crate) fn kserve_readiness(front: &Front) -> Response {
    let ready = front.phase() == Phase::Ready;
    answer(ready, Json(ServerReady { ready }))
}

/// 200, or 503 with the advice to ask again in a second.
fn answer(is_ready: bool, body: impl IntoResponse) -> Response {
    let mut response = body.into_response();
    if !is_ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
