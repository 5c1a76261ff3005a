//! `/health`, `/metrics` and `/openapi.json`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::openapi;
use crate::wire::{Json, KeyErrors, Permit, with_type};

/// A sign of life.
#[derive(Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always ok.
    #[schema(example = "ok")]
    status: &'static str,
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

/// Metrics for Prometheus
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "service",
    responses((status = 200, description = "Counters, gauges and histograms", body = String, content_type = "text/plain"), KeyErrors)
)]
pub(crate) async fn metrics(_: Permit, State(state): State<Arc<AppState>>) -> Response {
    counters(&state)
}

pub(crate) fn counters(state: &AppState) -> Response {
    let models = state.models.served.iter();
    let waiting: Vec<usize> = models.clone().map(|served| served.current().queue.waiting()).collect();
    let text = state.metrics.render(
        models
            .zip(waiting.iter().copied())
            .map(|(served, waiting)| (served.spec.name.as_str(), &*served.metrics, waiting)),
    );
    with_type(Body::from(text), "text/plain; version=0.0.4; charset=utf-8")
}

/// This description
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "service",
    responses((status = 200, description = "An OpenAPI document", body = Object))
)]
pub(crate) async fn description(State(state): State<Arc<AppState>>) -> Response {
    let text = state.description.get_or_init(|| openapi::describe(&state));
    with_type(Body::from(text.clone()), "application/json")
}
