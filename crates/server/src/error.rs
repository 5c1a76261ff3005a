//! Why there is no server, and why there is no answer.

use std::net::SocketAddr;
use std::path::PathBuf;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::work::Failure;

/// A server that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A model that cannot be served.
    #[error("model {name}: {cause}")]
    Model {
        /// Its name.
        name: String,
        /// Why.
        cause: String,
    },
    /// Two models with one name.
    #[error("two models are called {0}: give each a name of its own with --model NAME=FOLDER")]
    SameName(String),
    /// An address that is taken or not ours.
    #[error("cannot listen on {address}: {cause}; choose another --port or --host")]
    Address {
        /// Where.
        address: SocketAddr,
        /// Why.
        cause: std::io::Error,
    },
    /// A file of keys that cannot be used.
    #[error("the keys in {path} cannot be used: {cause}")]
    Keys {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
    /// Limits that contradict each other.
    #[error("{0}")]
    Limits(String),
    /// The system refuses threads.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// An answer that is an error: a status and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) sentence: String,
    /// Seconds.
    retry_after: Option<u64>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, sentence: impl Into<String>) -> Problem {
        Problem { status, sentence: sentence.into(), retry_after: None }
    }

    /// 400: the request must be changed.
    pub(crate) fn bad(sentence: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, sentence)
    }

    /// 404.
    pub(crate) fn missing(sentence: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, sentence)
    }

    /// 413: smaller pieces would do.
    pub(crate) fn large(sentence: impl Into<String>) -> Problem {
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, sentence)
    }

    /// 503: the same request may succeed later.
    pub(crate) fn busy() -> Problem {
        let sentence = "too many sentences are waiting already: try again in a moment";
        Problem { retry_after: Some(1), ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, sentence) }
    }

    /// 429: this key has had its share for now.
    pub(crate) fn too_often(seconds: u64) -> Problem {
        let sentence = format!("this key has used up its rate: try again in {seconds} s");
        Problem { retry_after: Some(seconds), ..Problem::new(StatusCode::TOO_MANY_REQUESTS, sentence) }
    }

    /// 504: the model did not get through in time.
    pub(crate) fn late(seconds: u64) -> Problem {
        let sentence = format!("it took more than {seconds} s: send less text at a time");
        Problem::new(StatusCode::GATEWAY_TIMEOUT, sentence)
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        match failure {
            Failure::Unreadable(sentence) => Problem::bad(sentence),
            Failure::Broken(sentence) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, sentence),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(json!({ "error": self.sentence }).to_string()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
