//! Training runs, for the page that shows them while they go on.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path as PathParameter, RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use heedful::train::log::{ATTENTION, METRICS, records_after};

use super::{json as answer, with_type};
use crate::app::Shared;
use crate::error::Problem;
use crate::models::Origin;

const REPORT: &str = "report.html";
/// A report has its styles and pictures in itself, and no script.
const REPORT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox";

/// `GET /v1/runs`
pub(crate) async fn list(State(shared): State<Arc<Shared>>) -> Response {
    let names: Vec<String> = runs(&shared).into_iter().map(|(name, _)| name).collect();
    answer(&names)
}

/// `GET /v1/runs/NAME/metrics?after=STEP`
pub(crate) async fn metrics(
    State(shared): State<Arc<Shared>>,
    PathParameter(name): PathParameter<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    records(&shared, &name, query, METRICS)
}

/// `GET /v1/runs/NAME/attention?after=STEP`
pub(crate) async fn attention(
    State(shared): State<Arc<Shared>>,
    PathParameter(name): PathParameter<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    records(&shared, &name, query, ATTENTION)
}

fn records(shared: &Shared, name: &str, query: Option<String>, file: &str) -> Result<Response, Problem> {
    let folder = find(shared, name)?;
    let after = form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .find(|(name, _)| name == "after")
        .map(|(_, step)| {
            step.parse::<u64>().map_err(|_| Problem::bad("`after` must be the number of a step"))
        })
        .transpose()?;
    let records = records_after(&folder.join(file), after.unwrap_or(0));
    Ok(answer(&records.map_err(|error| Problem::missing(error.to_string()))?))
}

/// `GET /v1/runs/NAME/report`
pub(crate) async fn report(
    State(shared): State<Arc<Shared>>,
    PathParameter(name): PathParameter<String>,
) -> Result<Response, Problem> {
    let folder = find(&shared, &name)?;
    let page = fs::read(folder.join(REPORT)).map_err(|_| {
        Problem::missing(format!("the run {name} has no report yet: it is written with the first validation"))
    })?;
    let mut response = with_type(Body::from(page), "text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(REPORT_POLICY));
    Ok(response)
}

/// Only names from the list lead to folders.
fn find(shared: &Shared, name: &str) -> Result<PathBuf, Problem> {
    let found = runs(shared).into_iter().find(|(known, _)| known == name);
    let missing = || Problem::missing(format!("there is no run `{name}`; /v1/runs lists what there is"));
    found.map(|(_, folder)| folder).ok_or_else(missing)
}

/// The run that was named at the start, the runs below the given folder, and the models that are runs themselves; of one name the
/// first.
fn runs(shared: &Shared) -> Vec<(String, PathBuf)> {
    let mut runs: Vec<(String, PathBuf)> = shared.run.iter().cloned().collect();
    let below = shared.runs.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut found: Vec<(String, PathBuf)> = below
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path()))
        .filter(|(_, folder)| is_run(folder))
        .collect();
    found.sort();
    runs.extend(found);
    for served in &shared.models.served {
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
