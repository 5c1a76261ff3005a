//! Errors as HTTP statuses.

use std::fmt::Display;

/// An error that the caller can correct, with the status that the server gives it.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) message: String,
}

impl ApiError {
    pub(crate) fn bad_request(message: impl Display) -> ApiError {
        ApiError { status: 400, message: message.to_string() }
    }

    pub(crate) fn not_found(message: impl Display) -> ApiError {
        ApiError { status: 404, message: message.to_string() }
    }

    pub(crate) fn too_large(message: impl Display) -> ApiError {
        ApiError { status: 413, message: message.to_string() }
    }
}

impl From<heedful::Error> for ApiError {
    fn from(error: heedful::Error) -> ApiError {
        ApiError::bad_request(error)
    }
}
