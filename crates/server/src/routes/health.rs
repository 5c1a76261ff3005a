//! `/health`: whether the server is alive, and whether it wants requests.
//!
//! ```text
//!             live   ready
//! loading     200    503     models are being read
//! ready       200    200
//! stuck       503    503     a worker makes no progress: only a restart ends that
//! draining    200    503     SIGTERM came: requests are answered, and others should take the next ones
//! ```

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::{AppState, Phase, SharedState};
use crate::models::ServedModel;
use crate::wire::Json;

/// Whether the server is alive, or wants requests.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok` or `ready` if it is well; `loading`, `stuck` or `draining`.
    #[schema(example = "ok")]
    status: &'static str,
    /// What is wrong, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Whether the server is alive
#[utoipa::path(
    get, path = "/health", tag = "service",
    responses(
        (status = 200, description = "It is", body = Health),
        (status = 503, description = "A worker makes no progress", body = Health),
    )
)]
pub(crate) async fn health(State(state): State<Arc<AppState>>) -> Health {
    Health::of_life(state.models.stuck())
}

/// Whether the server is alive: if not, restart it
#[utoipa::path(
    get, path = "/health/live", tag = "service",
    responses(
        (status = 200, description = "It is", body = Health),
        (status = 503, description = "A worker makes no progress", body = Health),
    )
)]
pub(crate) async fn live(state: State<Arc<AppState>>) -> Health {
    health(state).await
}

/// Whether requests should be sent here
#[utoipa::path(
    get, path = "/health/ready", tag = "service",
    responses(
        (status = 200, description = "They should", body = Health),
        (status = 503, description = "Loading, draining, or a worker makes no progress", body = Health),
    )
)]
pub(crate) async fn ready(State(state): State<Arc<AppState>>) -> Health {
    Health::of_readiness(&state)
}

impl Health {
    /// That of a server with this sentence about a worker that is stuck.
    pub(crate) fn of_life(stuck: Option<String>) -> Health {
        Health { status: if stuck.is_none() { "ok" } else { "stuck" }, error: stuck }
    }

    pub(crate) fn of_readiness(state: &AppState) -> Health {
        match state.models.served.iter().find_map(ServedModel::stuck) {
            Some(stuck) if state.shared.phase() == Phase::Ready => Health::of_life(Some(stuck)),
            _ => Health::of_phase(&state.shared),
        }
    }

    /// Readiness, as long as there are no models.
    pub(crate) fn of_phase(shared: &SharedState) -> Health {
        let (status, error) = match shared.phase() {
            Phase::Loading => ("loading", Some("the models are being loaded")),
            Phase::Ready => ("ready", None),
            Phase::Draining => ("draining", Some("this server is about to end: use another one")),
        };
        Health { status, error: error.map(str::to_owned) }
    }

    pub(crate) fn is_good(&self) -> bool {
        self.error.is_none()
    }
}

impl IntoResponse for Health {
    fn into_response(self) -> Response {
        answer(self.is_good(), Json(self))
    }
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
