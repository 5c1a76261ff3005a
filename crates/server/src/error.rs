//! Errors at the start of the server, and errors that are responses.

use std::net::SocketAddr;
use std::path::PathBuf;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::inference::JobError;
use crate::wire::Json;

/// A server that cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A model that cannot be served.
    #[error("model {name}: {cause}")]
    Model {
        /// Its name.
        name: String,
        /// The reason.
        cause: String,
    },
    /// Two models with one name.
    #[error("two models are called {0}: give each a name of its own with --model NAME=FOLDER")]
    SameName(String),
    /// An address that is in use or not local.
    #[error("cannot listen on {address}: {cause}; choose another --port or --host")]
    Address {
        /// The address.
        address: SocketAddr,
        /// The reason.
        cause: std::io::Error,
    },
    /// A metrics address that is in use or not local.
    #[error("cannot listen on {address} for metrics: {cause}; choose another --metrics-listen")]
    MetricsAddress {
        /// The address.
        address: SocketAddr,
        /// The reason.
        cause: std::io::Error,
    },
    /// A file of keys that cannot be used.
    #[error("the keys in {path} cannot be used: {cause}")]
    Keys {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: String,
    },
    /// Limits that contradict each other.
    #[error("{0}")]
    Limits(String),
    /// The system cannot start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}

/// The body of every error.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct ErrorBody {
    /// A sentence: the fault and the remedy.
    #[schema(example = "there is no field `beams`, did you mean `beam`?")]
    pub(crate) error: String,
}

/// A response that is an error: a status and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    /// Seconds.
    retry_after: Option<u64>,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> ApiError {
        ApiError { status, message: message.into(), retry_after: None }
    }

    /// 400: the request must be changed.
    pub(crate) fn bad_request(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, message)
    }

    /// 403.
    pub(crate) fn forbidden(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, message)
    }

    /// 404.
    pub(crate) fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, message)
    }

    /// 413: the request must be split.
    pub(crate) fn too_large(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    /// 429: the key has used up its rate.
    pub(crate) fn rate_limited(seconds: u64) -> ApiError {
        let message = format!("this key has used up its rate: try again in {seconds} s");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, message).after(seconds)
    }

    /// 429: too many unknown keys came from this address.
    pub(crate) fn locked_out(seconds: u64) -> ApiError {
        let message = format!("too many unknown API keys came from this address: try again in {seconds} s");
        ApiError::new(StatusCode::TOO_MANY_REQUESTS, message).after(seconds)
    }

    /// 500.
    pub(crate) fn internal(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// 503: the same request may succeed later.
    pub(crate) fn queue_full() -> ApiError {
        ApiError::unavailable("too many sentences are waiting already: try again in a moment").after(1)
    }

    /// 503: the worker makes no progress and may never do so again.
    pub(crate) fn stuck(what: &str) -> ApiError {
        ApiError::unavailable(format!("{what}: use another server, or restart this one"))
    }

    /// 503: the request took longer than the grace period of a replaced model.
    pub(crate) fn replaced(model: &str) -> ApiError {
        let message = format!("{model} was replaced by a newer version: send the request again");
        ApiError::unavailable(message).after(1)
    }

    /// 503: the server has just started.
    pub(crate) fn loading() -> ApiError {
        ApiError::unavailable("the models are being loaded: try again in a moment").after(1)
    }

    /// 504: the model did not finish before the deadline.
    pub(crate) fn deadline_exceeded(seconds: u64) -> ApiError {
        let message = format!("the request took more than {seconds} s: send less text at a time");
        ApiError::new(StatusCode::GATEWAY_TIMEOUT, message)
    }

    fn unavailable(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// Sets `Retry-After` in seconds.
    fn after(self, seconds: u64) -> ApiError {
        ApiError { retry_after: Some(seconds), ..self }
    }

    pub(crate) fn into_body(self) -> ErrorBody {
        ErrorBody { error: self.message }
    }
}

impl From<JobError> for ApiError {
    fn from(error: JobError) -> ApiError {
        match error {
            JobError::InvalidInput(message) => ApiError::bad_request(message),
            JobError::Internal(message) => ApiError::internal(message),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, retry_after) = (self.status, self.retry_after);
        let mut response = Json(self.into_body()).into_response();
        *response.status_mut() = status;
        if let Some(seconds) = retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
