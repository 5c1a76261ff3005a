//! The errors of routes, as `/openapi.json` describes them.

use std::collections::BTreeMap;

use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema};

use crate::error::ErrorBody;

/// Errors of a request without a body that needs a key.
pub(crate) struct KeyErrors;

/// Errors of a request about a run.
pub(crate) struct RunErrors;

/// Errors of a request before it reaches a model.
pub(crate) struct RequestErrors;

/// Errors of a request to a model, besides [`RequestErrors`].
pub(crate) struct ModelErrors;

impl IntoResponses for KeyErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[
            ("403", "The API key is missing or unknown"),
            ("429", "Too many unknown API keys came from this address; see Retry-After"),
        ])
    }
}

impl IntoResponses for RunErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let missing = described(&[("404", "There is no such run, or it has no such file yet")]);
        missing.into_iter().chain(KeyErrors::responses()).collect()
    }
}

impl IntoResponses for RequestErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[
            ("400", "A field is wrong; the sentence names it"),
            ("403", "The API key is missing, unknown, or not permitted to do this"),
            ("408", "The body did not arrive in time"),
            ("413", "The body, the text, a sentence or the number of sentences is too large"),
            ("415", "The body is neither JSON nor a form"),
            (
                "429",
                "The API key has used up its rate, or too many unknown ones came from this address; see Retry-After",
            ),
        ])
    }
}

impl IntoResponses for ModelErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        described(&[
            ("404", "There is no such model"),
            ("500", "The model failed"),
            (
                "503",
                "Too many sentences are waiting, or the model was replaced: see Retry-After. Or its worker makes no progress",
            ),
            ("504", "The model did not finish in time"),
        ])
    }
}

fn described(errors: &[(&str, &str)]) -> BTreeMap<String, RefOr<Response>> {
    let response = |&(status, description): &(&str, &str)| {
        let schema = Ref::from_schema_name(ErrorBody::name());
        let content = ContentBuilder::new().schema(Some(schema)).build();
        let response = ResponseBuilder::new().description(description).content("application/json", content);
        (status.to_owned(), response.build().into())
    };
    errors.iter().map(response).collect()
}
