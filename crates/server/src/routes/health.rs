//! `/health`: liveness and readiness.
//!
//! ```text
//!             live   ready
//! loading     200    503     models are being loaded
//! ready       200    200
//! stuck       503    503     a worker makes no progress: only a restart helps
//! draining    200    503     after SIGTERM: requests are answered, but new ones should go to other servers
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

/// The liveness or readiness of the server.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok` or `ready` if it is healthy; else `loading`, `stuck` or `draining`.
    #[schema(example = "ok")]
    status: &'static str,
    /// The fault, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Whether the server is alive
#[utoipa::path(
    get, path = "/health", tag = "service",
    responses(
        (status = 200, description = "It is alive", body = Health),
        (status = 503, description = "A worker makes no progress", body = Health),
    )
)]
pub(crate) async fn health(State(state): State<Arc<AppState>>) -> Health {
    Health::liveness(state.models.stuck())
}

/// Whether the server is alive; if not, restart it
#[utoipa::path(
    get, path = "/health/live", tag = "service",
    responses(
        (status = 200, description = "It is alive", body = Health),
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
        (status = 200, description = "The server is ready", body = Health),
        (status = 503, description = "Loading, draining, or a worker makes no progress", body = Health),
    )
)]
pub(crate) async fn ready(State(state): State<Arc<AppState>>) -> Health {
    Health::readiness(&state)
}

impl Health {
    /// Liveness, given a sentence about a stuck worker if there is one.
    pub(crate) fn liveness(stuck: Option<String>) -> Health {
        Health { status: if stuck.is_none() { "ok" } else { "stuck" }, error: stuck }
    }

    pub(crate) fn readiness(state: &AppState) -> Health {
        match state.models.served.iter().find_map(ServedModel::stuck) {
            Some(stuck) if state.shared.phase() == Phase::Ready => Health::liveness(Some(stuck)),
            _ => Health::from_phase(&state.shared),
        }
    }

    /// Readiness by the phase of the server alone.
    pub(crate) fn from_phase(shared: &SharedState) -> Health {
        let (status, error) = match shared.phase() {
            Phase::Loading => ("loading", Some("the models are being loaded")),
            Phase::Ready => ("ready", None),
            Phase::Draining => ("draining", Some("this server is about to end: use another one")),
        };
        Health { status, error: error.map(str::to_owned) }
    }

    pub(crate) fn is_healthy(&self) -> bool {
        self.error.is_none()
    }
}

impl IntoResponse for Health {
    fn into_response(self) -> Response {
        answer(self.is_healthy(), Json(self))
    }
}

/// 200, or 503 with `Retry-After: 1`.
fn answer(is_ready: bool, body: impl IntoResponse) -> Response {
    let mut response = body.into_response();
    if !is_ready {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
