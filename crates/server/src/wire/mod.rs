//! Serialization: requests are parsed into types, responses are written from types, and `/openapi.json` is
//! generated from these types. Types used by only one route are defined next to the route.

mod body;
mod fields;
mod response;

mod attention;
mod errors;
mod explanation;
mod texts;

pub(crate) use self::attention::AttentionForm;
pub(crate) use self::body::{API_KEY, Body, Fields, Query, admitted, all_as_text, read, require_key};
pub(crate) use self::errors::{KeyErrors, ModelErrors, RequestErrors, RunErrors};
pub(crate) use self::explanation::{ExplanationSchema, TokenSchema};
pub(crate) use self::fields::{at_most, read as read_fields};
pub(crate) use self::response::{Json, with_type};
pub(crate) use self::texts::{OneOrMany, Texts};
