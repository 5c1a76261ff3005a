//! Which request goes where, and what every answer has in common.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use heedful::decode::SearchOptions;

use crate::assets;
use crate::connections::Client;
use crate::error::{Problem, ServerError};
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::models::Models;
use crate::options::{AccessLog, Limits, ServerOptions};
use crate::routes::{classify, generate, libretranslate, models, runs, service, translate};

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) models: Arc<Models>,
    pub(crate) search: SearchOptions,
    pub(crate) limits: Limits,
    pub(crate) keys: Keys,
    pub(crate) metrics: Metrics,
    pub(crate) runs: Option<PathBuf>,
    pub(crate) run: Option<(String, PathBuf)>,
    allow_origin: Option<HeaderValue>,
    log: AccessLog,
}

impl Shared {
    pub(crate) fn new(options: &ServerOptions) -> Result<Shared, ServerError> {
        let origin = |origin: &String| {
            HeaderValue::from_str(origin).map_err(|_| {
                ServerError::Limits(format!("{origin:?} is no origin: give * or https://example.org"))
            })
        };
        Ok(Shared {
            keys: options.keys.as_deref().map(Keys::read).transpose()?.unwrap_or_default(),
            allow_origin: options.allow_origin.as_ref().map(origin).transpose()?,
            models: Arc::new(Models::open(options)?),
            search: options.search.clone(),
            limits: options.limits.clone(),
            metrics: Metrics::default(),
            runs: options.runs.clone(),
            run: options.run.clone(),
            log: options.log,
        })
    }
}

/// All routes. Every pattern is described in `openapi.json`; a test compares them.
pub(crate) fn app(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/translate", post(libretranslate::translate))
        .route("/detect", post(libretranslate::detect))
        .route("/languages", get(libretranslate::languages).post(libretranslate::languages))
        .route("/frontend/settings", get(libretranslate::settings))
        .route("/v1/translate", post(translate::translate))
        .route("/v1/classify", post(classify::classify))
        .route("/v1/generate", post(generate::generate))
        .route("/v1/models", get(models::list))
        .route("/v1/reload", post(models::reload))
        .route("/v1/runs", get(runs::list))
        .route("/v1/runs/{name}/metrics", get(runs::metrics))
        .route("/v1/runs/{name}/attention", get(runs::attention))
        .route("/v1/runs/{name}/report", get(runs::report))
        .route("/health", get(service::health))
        .route("/metrics", get(service::metrics))
        .route("/openapi.json", get(service::openapi))
        .fallback(page)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(shared.clone(), around))
        .with_state(shared)
}

async fn page(request: Request) -> Response {
    let found = match *request.method() {
        Method::GET | Method::HEAD => assets::serve(request.uri().path(), request.headers()),
        _ => None,
    };
    found.unwrap_or_else(|| {
        Problem::missing("there is nothing at this address; /openapi.json describes what there is")
            .into_response()
    })
}

async fn wrong_method() -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this address wants another method; see /openapi.json")
}

/// Counts and notes the answer, and adds the headers that all answers have.
async fn around(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let client = request.extensions().get::<Client>().copied();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let is_preflight = method == Method::OPTIONS && shared.allow_origin.is_some();
    let mut response =
        if is_preflight { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Some(origin) = &shared.allow_origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
        let allowed = HeaderValue::from_static("content-type, authorization");
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    let (status, time) = (response.status().as_u16(), start.elapsed());
    shared.metrics.note(route.as_deref().unwrap_or("other"), status, time);
    if shared.log == AccessLog::Lines {
        let client = client.map_or_else(|| "?".to_owned(), |Client(address)| address.ip().to_string());
        eprintln!("{client} {method} {path:?} {status} {:.1} ms", time.as_secs_f64() * 1000.0);
    }
    response
}
