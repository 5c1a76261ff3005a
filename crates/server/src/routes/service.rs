//! `/metrics` and `/openapi.json`.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;

use crate::app::{AppState, SharedState};
use crate::metrics::ModelReading;
use crate::models::ServedModel;
use crate::openapi;
use crate::routes::health::Health;
use crate::wire::{KeyErrors, with_type};

/// Metrics for Prometheus
#[utoipa::path(
    get, path = "/metrics", tag = "service",
    responses((status = 200, description = "Counters, gauges and histograms", body = String, content_type = "text/plain"), KeyErrors)
)]
pub(crate) async fn metrics(State(state): State<Arc<AppState>>) -> Response {
    counters(&state)
}

pub(crate) fn counters(state: &AppState) -> Response {
    let reading = |served: &ServedModel| {
        let (queues, now) = (served.queues(), Instant::now());
        ModelReading {
            name: served.spec.name.clone(),
            metrics: served.metrics.clone(),
            waiting: queues[0].depth(),
            versions: queues.len(),
            stuck: queues.iter().map(|queue| queue.workers.stuck(now).len()).sum(),
        }
    };
    let models: Vec<ModelReading> = state.models.served.iter().map(reading).collect();
    metrics_page(&state.shared, &Health::readiness(state), &models)
}

/// The metrics page of a server with these models.
pub(crate) fn metrics_page(shared: &SharedState, readiness: &Health, models: &[ModelReading]) -> Response {
    let text = shared.metrics.render(readiness.is_healthy(), models);
    with_type(Body::from(text), "text/plain; version=0.0.4; charset=utf-8")
}

/// This description
#[utoipa::path(
    get, path = "/openapi.json", tag = "service",
    responses((status = 200, description = "An OpenAPI document", body = Object))
)]
pub(crate) async fn description(State(state): State<Arc<AppState>>) -> Response {
    let text = state.description.get_or_init(|| openapi::describe(&state));
    with_type(Body::from(text.clone()), "application/json")
}
