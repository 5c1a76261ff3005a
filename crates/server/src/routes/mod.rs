//! One file for each group of addresses.

pub(crate) mod classify;
pub(crate) mod generate;
pub(crate) mod libretranslate;
pub(crate) mod models;
pub(crate) mod runs;
pub(crate) mod service;
pub(crate) mod translate;

mod choice;
mod conversation;
mod events;
mod preparation;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::Problem;

/// A value as JSON.
fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => with_type(Body::from(bytes), "application/json"),
        Err(error) => {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("the answer cannot be written: {error}"))
                .into_response()
        }
    }
}

fn with_type(body: Body, kind: &'static str) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
