//! Training runs, for the page that shows them during training.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path as PathParameter, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use heedful::recipe::{Author, Overrides};
use heedful::tasks::resolve;
use heedful::train::log::{ATTENTION, ENDING, METRICS, records_after};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::AppState;
use crate::error::{ApiError, ErrorBody};
use crate::models::Origin;
use crate::wire::{Json, KeyErrors, Query, RunErrors, with_type};

const REPORT: &str = "report.html";
const HEADS: &str = "heads.html";
/// A report contains its styles and pictures, and no script.
const REPORT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

/// The selection of a run's records.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RecordsQuery {
    /// Only records of later steps.
    #[serde(default)]
    #[param(default = 0)]
    after: u64,
}

/// List the training runs by name
#[utoipa::path(
    get, path = "/v1/runs", tag = "runs",
    responses((status = 200, description = "The names", body = Vec<String>), KeyErrors)
)]
pub(crate) async fn runs(State(state): State<Arc<AppState>>) -> Json<Vec<String>> {
    Json(folders(&state).into_iter().map(|(name, _)| name).collect())
}

/// The planned length of a run, whether it has ended, and its further pages.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunPlan {
    /// The number of steps; null if the run is limited by time only, or has no recipe.
    #[schema(required)]
    steps: Option<u64>,
    /// The time limit of the run in seconds, if it has one.
    #[schema(required)]
    seconds: Option<u64>,
    /// Whether /v1/runs/{name}/heads exists.
    heads: bool,
    /// Why the run ended; null while it continues.
    #[schema(required)]
    ending: Option<String>,
}

/// The planned length of a run
#[utoipa::path(
    get, path = "/v1/runs/{name}/plan", tag = "runs",
    params(("name" = String, Path, description = "A name from /v1/runs")),
    responses((status = 200, description = "The plan", body = RunPlan), RunErrors)
)]
pub(crate) async fn run_plan(
    State(state): State<Arc<AppState>>,
    PathParameter(name): PathParameter<String>,
) -> Result<Json<RunPlan>, ApiError> {
    let folder = find(&state, &name)?;
    let mut overrides = Overrides::new();
    overrides.written_by(Author::Program);
    // A folder without a recipe, or with one of another version, has no plan.
    let recipe = overrides.file(&folder.join("recipe.toml")).ok().and_then(|()| resolve(overrides).ok());
    Ok(Json(RunPlan {
        steps: recipe.as_ref().and_then(|recipe| recipe.training.steps),
        seconds: recipe.as_ref().and_then(|recipe| recipe.training.time).map(|time| time.as_secs()),
        heads: folder.join(HEADS).is_file(),
        ending: ending(&folder),
    }))
}

/// The reason in the last line of the log; `None` for a run that continues or was killed.
fn ending(folder: &Path) -> Option<String> {
    let records = records_after(&folder.join(METRICS), 0).ok()?;
    records.last()?.get(ENDING)?.as_str().map(str::to_owned)
}

/// The metrics of a run, step by step
#[utoipa::path(
    get, path = "/v1/runs/{name}/metrics", tag = "runs",
    params(("name" = String, Path, description = "A name from /v1/runs"), RecordsQuery),
    responses(
        (status = 200, description = "The records", body = Vec<Object>),
        (status = 400, description = "`after` is not a number", body = ErrorBody),
        RunErrors,
    )
)]
pub(crate) async fn run_metrics(
    State(state): State<Arc<AppState>>,
    PathParameter(name): PathParameter<String>,
    Query(query): Query<RecordsQuery>,
) -> Result<Json<Vec<Value>>, ApiError> {
    records(&state, &name, &query, METRICS)
}

/// The attention of a run for one sentence, validation by validation
#[utoipa::path(
    get, path = "/v1/runs/{name}/attention", tag = "runs",
    params(("name" = String, Path, description = "A name from /v1/runs"), RecordsQuery),
    responses(
        (status = 200, description = "The records", body = Vec<Object>),
        (status = 400, description = "`after` is not a number", body = ErrorBody),
        RunErrors,
    )
)]
pub(crate) async fn run_attention(
    State(state): State<Arc<AppState>>,
    PathParameter(name): PathParameter<String>,
    Query(query): Query<RecordsQuery>,
) -> Result<Json<Vec<Value>>, ApiError> {
    records(&state, &name, &query, ATTENTION)
}

fn records(
    state: &AppState,
    name: &str,
    query: &RecordsQuery,
    file: &str,
) -> Result<Json<Vec<Value>>, ApiError> {
    let records = records_after(&find(state, name)?.join(file), query.after);
    records.map(Json).map_err(|error| ApiError::not_found(error.to_string()))
}

/// The report of a run
#[utoipa::path(
    get, path = "/v1/runs/{name}/report", tag = "runs",
    params(("name" = String, Path, description = "A name from /v1/runs")),
    responses((status = 200, description = "A page", body = String, content_type = "text/html"), RunErrors)
)]
pub(crate) async fn run_report(
    State(state): State<Arc<AppState>>,
    PathParameter(name): PathParameter<String>,
) -> Result<Response, ApiError> {
    let missing = format!("the run {name} has no report yet: it is written with the first validation");
    page(&find(&state, &name)?.join(REPORT), missing)
}

/// The behaviour of a model's heads over a corpus
///
/// The page that `heedful explain heads RUN … -o RUN/heads.html` writes.
#[utoipa::path(
    get, path = "/v1/runs/{name}/heads", tag = "runs",
    params(("name" = String, Path, description = "A name from /v1/runs")),
    responses((status = 200, description = "A page", body = String, content_type = "text/html"), RunErrors)
)]
pub(crate) async fn run_heads(
    State(state): State<Arc<AppState>>,
    PathParameter(name): PathParameter<String>,
) -> Result<Response, ApiError> {
    let missing = format!(
        "the run {name} has no {HEADS}: write it into its folder with heedful explain heads … -o {HEADS}"
    );
    page(&find(&state, &name)?.join(HEADS), missing)
}

fn page(path: &Path, missing: String) -> Result<Response, ApiError> {
    let page = fs::read(path).map_err(|_| ApiError::not_found(missing))?;
    let mut response = with_type(Body::from(page), "text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(REPORT_POLICY));
    Ok(response)
}

/// Names are looked up in the list of folders, so no path from a client is ever opened.
fn find(state: &AppState, name: &str) -> Result<PathBuf, ApiError> {
    let found = folders(state).into_iter().find(|(known, _)| known == name);
    let unknown = || ApiError::not_found(format!("there is no run `{name}`; /v1/runs lists all runs"));
    found.map(|(_, folder)| folder).ok_or_else(unknown)
}

/// The run of [`crate::ServerOptions::run`], the runs below the folder, and the models that are runs
/// themselves. The first of equal names wins.
fn folders(state: &AppState) -> Vec<(String, PathBuf)> {
    let mut runs: Vec<(String, PathBuf)> = state.run.iter().cloned().collect();
    let below = state.runs.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut found: Vec<(String, PathBuf)> = below
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .filter(|(_, folder)| is_run(folder))
        .collect();
    found.sort();
    runs.extend(found);
    for served in &state.models.served {
        if let Origin::Folder(folder) = &served.spec.origin
            && is_run(folder)
        {
            runs.push((served.spec.name.clone(), folder.clone()));
        }
    }
    let mut names = std::collections::HashSet::new();
    runs.retain(|(name, _)| names.insert(name.clone()));
    runs
}

fn is_run(folder: &Path) -> bool {
    folder.join(METRICS).is_file()
}
