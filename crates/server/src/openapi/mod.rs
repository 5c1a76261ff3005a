//! `/openapi.json`: the descriptions of all routes and types, with the errors, keys and limits of all routes.

mod bounds;

use std::collections::BTreeSet;
use std::sync::Arc;

use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{Content, InfoBuilder, OpenApi, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::app::AppState;
use crate::error::ErrorBody;
use crate::options::Limits;
use crate::routes::routes;
use crate::wire::API_KEY;

const SUMMARY: &str = "Translation, classification and text generation by attention models, with every attention weight \
                       on request. /translate, /detect and /languages have the API of LibreTranslate; /v1 has \
                       everything. Every error is {\"error\": \"a sentence\"}.";

/// The description of a server with its limits, models and languages, as JSON.
pub(crate) fn describe(state: &Arc<AppState>) -> String {
    let limits = &state.limits;
    let mut description = routes(state).into_openapi();
    description.info = InfoBuilder::new()
        .title("heedful")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(format!("{SUMMARY}\n\n{}", describe_limits(limits))))
        .build();
    let tag = |name: &str, text: &str| TagBuilder::new().name(name).description(Some(text)).build();
    description.tags = Some(vec![
        tag("LibreTranslate", "The API of LibreTranslate"),
        tag("v1", "Translation, classification and generation with all details"),
        tag("runs", "Training runs and their records"),
        tag("service", "Health, metrics and this description"),
    ]);
    describe_errors(&mut description);
    describe_key(&mut description);
    let mut json = serde_json::to_value(&description).unwrap_or_default();
    bounds::add(&mut json, state);
    json.to_string()
}

fn describe_limits(limits: &Limits) -> String {
    format!(
        "The limits of this server: {} bytes, {} characters and {} sentences a request; beam and n_best up to {}, \
         alternatives up to {}; {} generated tokens; {} sentences in the queue of each model; {} s for a response; {} s for a client to \
         send a request; {} connections, {} from one address.",
        limits.body_bytes,
        limits.characters,
        limits.sentences,
        limits.beam,
        limits.beam - 1,
        limits.tokens,
        limits.queue,
        limits.timeout.as_secs(),
        limits.client_timeout.as_secs(),
        limits.connections,
        limits.connections_per_address,
    )
}

/// The error schema is shared by all routes, so no route registers it.
fn describe_errors(description: &mut OpenApi) {
    let components = description.components.get_or_insert_default();
    components.schemas.insert(ErrorBody::name().into_owned(), ErrorBody::schema());
}

/// The API key: a header for all routes, or a field of every body.
fn describe_key(description: &mut OpenApi) {
    let bodies: BTreeSet<String> = description
        .paths
        .paths
        .values()
        .filter_map(|path| path.post.as_ref())
        .flat_map(body_schemas)
        .collect();
    let components = description.components.get_or_insert_default();
    for name in bodies {
        if let Some(RefOr::T(Schema::Object(body))) = components.schemas.get_mut(&name) {
            body.properties.insert(API_KEY.to_owned(), key_field().into());
        }
    }
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key, if the server has keys"))
        .build();
    components.add_security_scheme("key", SecurityScheme::Http(scheme));
    // The empty requirement: a server may have no keys.
    description.security =
        Some(vec![SecurityRequirement::default(), SecurityRequirement::new::<_, [&str; 0], &str>("key", [])]);
}

fn key_field() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::String)
        .description(Some("Needed if the server has keys; may also be sent as Authorization: Bearer KEY"))
        .build()
}

/// The names of the schemas that are bodies of an operation.
fn body_schemas(operation: &Operation) -> Vec<String> {
    let Some(RefOr::T(body)) = &operation.request_body else { return Vec::new() };
    let schema = |content: &RefOr<Content>| match content {
        RefOr::T(content) => content.schema.as_ref().and_then(schema_name),
        RefOr::Ref(_) => None,
    };
    body.content.values().filter_map(schema).collect()
}

fn schema_name(schema: &RefOr<Schema>) -> Option<String> {
    match schema {
        RefOr::Ref(reference) => reference.ref_location.rsplit('/').next().map(str::to_owned),
        // An optional body.
        RefOr::T(Schema::OneOf(choices)) => choices.items.iter().find_map(schema_name),
        RefOr::T(_) => None,
    }
}
