//! The edges: requests are read into types, responses are written from types, and both are described by these types in
//! `/openapi.json`. What only one route sends or receives stands beside the route.

mod body;
mod fields;
mod response;
mod upload;

mod attention;
mod errors;
mod explanation;
mod texts;

pub(crate) use self::attention::{AttentionForm, scores_kept};
pub(crate) use self::body::{API_KEY, Body, Permit, Query};
pub(crate) use self::errors::{KeyErrors, ModelErrors, RequestErrors};
pub(crate) use self::explanation::{ExplanationSchema, TokenSchema};
pub(crate) use self::fields::at_most;
pub(crate) use self::response::{Json, with_type};
pub(crate) use self::texts::{OneOrMany, Texts};
pub(crate) use self::upload::Upload;
