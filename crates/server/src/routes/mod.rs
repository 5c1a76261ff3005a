//! The routes, one file for each group. A route is a handler with its description (`#[utoipa::path]`) and its
//! types. A new route needs a file, a `mod` line, a line in [`routes()`] and an entry in the test that lists
//! all routes.

pub(crate) mod libretranslate;

pub(crate) mod translate;

pub(crate) mod classify;
pub(crate) mod fill;
pub(crate) mod generate;

pub(crate) mod health;
pub(crate) mod models;
pub(crate) mod runs;
pub(crate) mod service;

mod target;

mod pending_job;
mod sse;

use std::sync::Arc;

use axum::middleware::from_fn_with_state;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::AppState;
use crate::wire::require_key;

/// All routes with their descriptions.
pub(crate) fn routes(state: &Arc<AppState>) -> OpenApiRouter<Arc<AppState>> {
    let keyed = without_bodies().route_layer(from_fn_with_state(state.clone(), require_key));
    with_bodies().merge(keyed).merge(open())
}

/// Routes with a body, whose extractor checks the key ([`crate::wire::Body`]).
fn with_bodies() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(libretranslate::translation::translate))
        .routes(routes!(libretranslate::files::translate_file))
        .routes(routes!(libretranslate::languages::detect))
        .routes(routes!(translate::translate))
        .routes(routes!(classify::classify))
        .routes(routes!(generate::generate))
        .routes(routes!(fill::fill))
        .routes(routes!(models::reload))
}

/// Routes without a body that need a key.
fn without_bodies() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(models::models))
        .routes(routes!(runs::runs))
        .routes(routes!(runs::run_plan))
        .routes(routes!(runs::run_metrics))
        .routes(routes!(runs::run_attention))
        .routes(routes!(runs::run_report))
        .routes(routes!(runs::run_heads))
        .routes(routes!(service::metrics))
}

/// Routes for anyone.
fn open() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(libretranslate::files::download_file))
        .routes(routes!(libretranslate::languages::get_languages, libretranslate::languages::post_languages))
        .routes(routes!(libretranslate::languages::settings))
        .routes(routes!(health::health))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(service::description))
}
