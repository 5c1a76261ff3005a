//! The routes, one file for each group. A route is a handler with its description (`#[utoipa::path]`) and its types; a new
//! one needs its file, a `mod` line and a line in [`routes()`], and the test that pins the list of routes.

pub(crate) mod libretranslate;

pub(crate) mod translate;

pub(crate) mod classify;
pub(crate) mod fill;
pub(crate) mod generate;

pub(crate) mod health;
pub(crate) mod models;
pub(crate) mod runs;
pub(crate) mod service;

mod model_selection;
mod tokenize;

mod pending_job;
mod sse;

use std::sync::Arc;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::AppState;

/// All routes with their descriptions.
pub(crate) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(libretranslate::translation::translate))
        .routes(routes!(libretranslate::files::translate_file))
        .routes(routes!(libretranslate::files::download_file))
        .routes(routes!(libretranslate::suggestion::suggest))
        .routes(routes!(libretranslate::detection::detect))
        .routes(routes!(libretranslate::languages::get_languages, libretranslate::languages::post_languages))
        .routes(routes!(libretranslate::settings::settings))
        .routes(routes!(translate::translate))
        .routes(routes!(classify::classify))
        .routes(routes!(generate::generate))
        .routes(routes!(fill::fill))
        .routes(routes!(models::list))
        .routes(routes!(models::reload))
        .routes(routes!(runs::list))
        .routes(routes!(runs::plan))
        .routes(routes!(runs::metrics))
        .routes(routes!(runs::attention))
        .routes(routes!(runs::report))
        .routes(routes!(runs::heads))
        .routes(routes!(health::health))
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(health::kserve_live))
        .routes(routes!(health::kserve_ready))
        .routes(routes!(health::kserve_model))
        .routes(routes!(service::metrics))
        .routes(routes!(service::description))
}
