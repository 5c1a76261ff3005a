//! Server-sent events: a response in pieces.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::Stream;
use serde::Serialize;

use crate::wire::with_type;

/// The data of an event, which has a name.
pub(super) trait Event: Serialize {
    fn name(&self) -> &'static str;
}

/// An event as text. JSON has no line breaks, so one `data` line is enough.
pub(super) fn text(event: &impl Event) -> String {
    match serde_json::to_string(event) {
        Ok(data) => format!("event: {}\ndata: {data}\n\n", event.name()),
        Err(error) => {
            let data = serde_json::json!({ "error": error.to_string() });
            format!("event: error\ndata: {data}\n\n")
        }
    }
}

/// A stream of events as a response.
pub(super) fn response(events: impl Stream<Item = Result<String, Infallible>> + Send + 'static) -> Response {
    let mut response = with_type(Body::from_stream(events), "text/event-stream");
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
