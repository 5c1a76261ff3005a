//! The application: its state, and the middleware around all routes.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use heedful::decode::SearchOptions;

use crate::assets;
use crate::connections::Client;
use crate::error::{ApiError, ServerError};
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::models::Models;
use crate::options::{AccessLog, Limits, ServerOptions};
use crate::routes::routes;

/// The state that all requests share.
pub(crate) struct AppState {
    pub(crate) models: Arc<Models>,
    pub(crate) search: SearchOptions,
    pub(crate) limits: Limits,
    pub(crate) keys: Keys,
    pub(crate) metrics: Metrics,
    pub(crate) runs: Option<PathBuf>,
    pub(crate) run: Option<(String, PathBuf)>,
    /// The text of `/openapi.json`, from the first request for it.
    pub(crate) description: OnceLock<String>,
    allow_origin: Option<HeaderValue>,
    log: AccessLog,
}

impl AppState {
    pub(crate) fn new(options: &ServerOptions) -> Result<AppState, ServerError> {
        let origin = |origin: &String| {
            HeaderValue::from_str(origin).map_err(|_| {
                ServerError::Limits(format!("{origin:?} is no origin: give * or https://example.org"))
            })
        };
        Ok(AppState {
            keys: options.keys.as_deref().map(Keys::read).transpose()?.unwrap_or_default(),
            allow_origin: options.allow_origin.as_ref().map(origin).transpose()?,
            models: Arc::new(Models::open(options)?),
            search: options.search.clone(),
            limits: options.limits.clone(),
            metrics: Metrics::default(),
            description: OnceLock::new(),
            runs: options.runs.clone(),
            run: options.run.clone(),
            log: options.log,
        })
    }
}

/// The routes, the page, and what every response has in common.
pub(crate) fn app(state: Arc<AppState>) -> Router {
    Router::from(routes())
        .fallback(page)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(state.clone(), middleware))
        .with_state(state)
}

async fn page(request: Request) -> Response {
    let found = match *request.method() {
        Method::GET | Method::HEAD => assets::serve(request.uri().path(), request.headers()),
        _ => None,
    };
    found.unwrap_or_else(|| {
        ApiError::not_found("there is nothing at this address; /openapi.json describes all routes")
            .into_response()
    })
}

async fn wrong_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "this address needs another method; see /openapi.json")
}

/// Counts and logs the response, and adds the headers that all responses have.
async fn middleware(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let client = request.extensions().get::<Client>().copied();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let is_preflight = method == Method::OPTIONS && state.allow_origin.is_some();
    let mut response =
        if is_preflight { StatusCode::NO_CONTENT.into_response() } else { next.run(request).await };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if let Some(origin) = &state.allow_origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
        let allowed = HeaderValue::from_static("content-type, authorization");
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    let (status, time) = (response.status().as_u16(), start.elapsed());
    state.metrics.observe(route.as_deref().unwrap_or("other"), status, time);
    if state.log == AccessLog::Lines {
        let client = client.map_or_else(|| "?".to_owned(), |Client(address)| address.ip().to_string());
        eprintln!("{client} {method} {path:?} {status} {:.1} ms", time.as_secs_f64() * 1000.0);
    }
    response
}
