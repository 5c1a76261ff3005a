//! `/health`, `/metrics` and `/openapi.json`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use super::{json as answer, with_type};
use crate::app::Shared;

const OPENAPI: &str = include_str!("../openapi.json");

/// `GET /health`
pub(crate) async fn health() -> Response {
    answer(&json!({ "status": "ok" }))
}

/// `GET /metrics`
pub(crate) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let models = shared.models.served.iter();
    let waiting: Vec<usize> = models.clone().map(|served| served.current().queue.waiting()).collect();
    let page = shared.metrics.page(
        models
            .zip(waiting.iter().copied())
            .map(|(served, waiting)| (served.spec.name.as_str(), &*served.metrics, waiting)),
    );
    with_type(Body::from(page), "text/plain; version=0.0.4; charset=utf-8")
}

/// `GET /openapi.json`
pub(crate) async fn openapi() -> Response {
    with_type(Body::from(OPENAPI), "application/json")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_description_has_every_route_and_the_right_version() {
        let description: Value = serde_json::from_str(OPENAPI).expect("JSON");
        assert_eq!(description["info"]["version"], env!("CARGO_PKG_VERSION"));
        let source = include_str!("../app.rs");
        let routes: Vec<&str> = source
            .lines()
            .filter_map(|line| line.trim().strip_prefix(".route(\"")?.split('"').next())
            .collect();
        assert!(routes.len() >= 15, "{routes:?}");
        let paths = description["paths"].as_object().expect("paths");
        assert!(routes.iter().all(|route| paths.contains_key(*route)), "{routes:?}");
        assert_eq!(routes.len(), paths.len());
    }
}
