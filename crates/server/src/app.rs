//! The application: its state, its routers while models are loaded and afterwards, and the middleware of all
//! routes.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use heedful::decode::SearchOptions;
use parking_lot::Mutex;

use crate::assets;
use crate::connections::Client;
use crate::downloads::Downloads;
use crate::error::{ApiError, Error};
use crate::host_policy::HostPolicy;
use crate::keys::Keys;
use crate::metrics::Metrics;
use crate::models::Models;
use crate::options::{AccessLog, Limits, ServerOptions};
use crate::proxies::Proxies;
use crate::routes::health::{self, Health};
use crate::routes::{routes, service};

/// The number of translated files of maximum size that are kept.
const DOWNLOADS: usize = 16;

/// The lifecycle of a server. Phases only advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// The models are being loaded; requests for them get 503.
    Loading,
    /// Everything is answered.
    Ready,
    /// Everything is answered, but no more requests should be sent: the server is about to end.
    Draining,
}

/// The state shared by all requests, also while models are being loaded.
pub(crate) struct SharedState {
    phase: Mutex<Phase>,
    host_policy: HostPolicy,
    pub(crate) proxies: Proxies,
    pub(crate) metrics: Metrics,
    log: AccessLog,
}

impl SharedState {
    pub(crate) fn new(options: &ServerOptions) -> Result<SharedState, Error> {
        Ok(SharedState {
            phase: Mutex::new(Phase::Loading),
            host_policy: HostPolicy::new(options)?,
            proxies: Proxies::new(options)?,
            metrics: Metrics::default(),
            log: options.log,
        })
    }

    pub(crate) fn phase(&self) -> Phase {
        *self.phase.lock()
    }

    /// Enters the next phase.
    pub(crate) fn enter(&self, next: Phase) {
        let mut phase = self.phase.lock();
        *phase = next.max(*phase);
    }
}

/// Selects the router of each request: `starting` until the models are loaded, then `serving`.
#[derive(Clone)]
pub(crate) struct SwitchingService {
    starting: Router,
    serving: Arc<OnceLock<Router>>,
}

impl SwitchingService {
    pub(crate) fn new(starting: Router) -> SwitchingService {
        SwitchingService { starting, serving: Arc::default() }
    }

    /// Lets this router answer all later requests.
    pub(crate) fn switch(&self, serving: Router) {
        // Called once per server; a second call would have no effect.
        let _ = self.serving.set(serving);
    }

    /// The router for the next request.
    pub(crate) fn router(&self) -> Router {
        self.serving.get().unwrap_or(&self.starting).clone()
    }
}

/// The state of the routes once the models are loaded.
pub(crate) struct AppState {
    pub(crate) models: Arc<Models>,
    pub(crate) search: SearchOptions,
    pub(crate) limits: Limits,
    pub(crate) keys: Keys,
    pub(crate) shared: Arc<SharedState>,
    pub(crate) runs: Option<PathBuf>,
    pub(crate) run: Option<(String, PathBuf)>,
    /// The text of `/openapi.json`, built on the first request.
    pub(crate) description: OnceLock<String>,
    /// Translated files.
    pub(crate) downloads: Downloads,
}

impl AppState {
    /// Loads the models.
    pub(crate) fn load(
        options: &ServerOptions,
        shared: Arc<SharedState>,
        keys: Keys,
    ) -> Result<AppState, Error> {
        Ok(AppState {
            keys,
            shared,
            downloads: Downloads::new(DOWNLOADS * options.limits.body_bytes),
            models: Arc::new(Models::open(options)?),
            search: options.search.clone(),
            limits: options.limits.clone(),
            description: OnceLock::new(),
            runs: options.runs.clone(),
            run: options.run.clone(),
        })
    }
}

/// The routes, the web page, and the headers of all responses.
pub(crate) fn app(state: Arc<AppState>) -> Router {
    Router::from(routes(&state))
        .fallback(page)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(state.shared.clone(), middleware))
        .with_state(state)
}

/// The app of `--metrics-listen`: metrics without a key.
pub(crate) fn metrics_app(state: Arc<AppState>) -> Router {
    let counters = async |State(state): State<Arc<AppState>>| service::counters(&state);
    Router::new()
        .route("/metrics", get(counters))
        .route("/health", get(health::health))
        .route("/health/live", get(health::live))
        .route("/health/ready", get(health::ready))
        .fallback(async || ApiError::not_found("there is nothing at this address; /metrics has the counters"))
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(state.shared.clone(), middleware))
        .with_state(state)
}

/// The app until the models are loaded: the server is alive, but not ready.
pub(crate) fn starting_app(shared: Arc<SharedState>) -> Router {
    let alive = async || Health::liveness(None);
    let ready = async |State(shared): State<Arc<SharedState>>| Health::from_phase(&shared);
    Router::new()
        .route("/health", get(alive))
        .route("/health/live", get(alive))
        .route("/health/ready", get(ready))
        .fallback(async || ApiError::loading())
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(shared.clone(), middleware))
        .with_state(shared)
}

/// The app of `--metrics-listen` until the models are loaded.
pub(crate) fn starting_metrics_app(shared: Arc<SharedState>) -> Router {
    let counters = async |State(shared): State<Arc<SharedState>>| {
        service::metrics_page(&shared, &Health::from_phase(&shared), &[])
    };
    Router::new()
        .route("/metrics", get(counters))
        .with_state(shared.clone())
        .fallback_service(starting_app(shared))
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
async fn middleware(State(shared): State<Arc<SharedState>>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let client = request.extensions().get::<Client>().copied();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let is_preflight = method == Method::OPTIONS && shared.host_policy.origin.is_some();
    let mut response = match shared.host_policy.check(request.uri(), request.headers()) {
        Err(refused) => refused.into_response(),
        Ok(()) if is_preflight => StatusCode::NO_CONTENT.into_response(),
        Ok(()) => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    if shared.phase() == Phase::Draining {
        // A client that keeps its connection open would not switch to another server.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(origin) = &shared.host_policy.origin {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
        let allowed = HeaderValue::from_static("content-type, authorization");
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    let (status, time) = (response.status().as_u16(), start.elapsed());
    shared.metrics.observe(route.as_deref().unwrap_or("other"), status, time);
    if shared.log == AccessLog::Lines {
        let client = client.map_or_else(|| "?".to_owned(), |client| client.address.to_string());
        eprintln!("{client} {method} {path:?} {status} {:.1} ms", time.as_secs_f64() * 1000.0);
    }
    response
}
