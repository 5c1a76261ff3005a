//! `POST /v1/attend`: the calculator.

use heedful::explain::calculator::{Exercise, ExerciseOverrides};

use crate::error::ApiError;
use crate::session::Response;

/// The solution of an exercise, as `heedful attend --json` prints it.
pub(crate) fn answer(body: &[u8]) -> Result<Response, ApiError> {
    let text = str::from_utf8(body).map_err(ApiError::bad_request)?;
    let exercise =
        Exercise::parse_with(text, &ExerciseOverrides::default()).map_err(ApiError::bad_request)?;
    Ok(Response { status: 200, body: exercise.solve().to_json().to_string().into_bytes() })
}
