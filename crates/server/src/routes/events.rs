//! Server-sent events: an answer in pieces.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::Stream;
use serde::Serialize;
use serde_json::json;

use super::with_type;
use crate::error::Problem;

/// One event. JSON has no line breaks, so one `data` line is enough.
pub(super) fn event(name: &str, data: &impl Serialize) -> String {
    match serde_json::to_string(data) {
        Ok(data) => format!("event: {name}\ndata: {data}\n\n"),
        Err(cause) => error(&cause.to_string()),
    }
}

/// The end of a stream that failed after it had begun.
pub(super) fn problem(problem: &Problem) -> String {
    error(&problem.sentence)
}

fn error(sentence: &str) -> String {
    format!("event: error\ndata: {}\n\n", json!({ "error": sentence }))
}

/// A stream of events as an answer.
pub(super) fn answer(events: impl Stream<Item = Result<String, Infallible>> + Send + 'static) -> Response {
    let mut response = with_type(Body::from_stream(events), "text/event-stream");
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
