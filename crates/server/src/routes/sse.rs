//! Server-sent events: a streamed response.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::stream::unfold;
use serde::Serialize;

use super::pending_job::{JobUpdate, PendingJob};
use crate::wire::with_type;

/// An event as text. JSON has no line breaks, so one `data` line is enough.
pub(super) fn event(name: &str, data: &impl Serialize) -> String {
    match serde_json::to_string(data) {
        Ok(data) => format!("event: {name}\ndata: {data}\n\n"),
        Err(error) => event("error", &serde_json::json!({ "error": error.to_string() })),
    }
}

/// The events of a job as a response. `to_event` turns each update, and the end of the job (`None`), into an
/// event. The stream ends with the job, with an error, or when `to_event` returns `None`.
pub(super) fn response(
    job: PendingJob,
    to_event: impl FnMut(&PendingJob, Option<JobUpdate>) -> Option<String> + Send + 'static,
) -> Response {
    let events = unfold(Some((job, to_event)), |state| async {
        let (mut job, mut to_event) = state?;
        let update = job.next().await;
        let is_last = !matches!(update, Ok(Some(_)));
        let text = match update {
            Ok(update) => to_event(&job, update)?,
            Err(error) => event("error", &error.into_body()),
        };
        Some((Ok::<_, Infallible>(text), (!is_last).then_some((job, to_event))))
    });
    let mut response = with_type(Body::from_stream(events), "text/event-stream");
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
