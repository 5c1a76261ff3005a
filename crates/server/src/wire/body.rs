//! Extractors: the fields of a request, from a JSON object, a form or the query. They check the rights and
//! rates of the API key and the number of characters, so no handler sees fields of a request that was not
//! admitted.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::body::{Body as RawBody, Bytes, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use serde::de::DeserializeOwned;
use serde_json::map::Entry;
use serde_json::{Map, Value};

use super::fields;
use crate::app::AppState;
use crate::connections::Client;
use crate::error::ApiError;
use crate::keys::{Cost, PresentedKey};
use crate::options::Limits;

/// The field of the API key, allowed in every body.
pub(crate) const API_KEY: &str = "api_key";

/// The fields of a body, which determine the cost of the request.
pub(crate) trait Fields: DeserializeOwned {
    fn cost(&self) -> Cost;
}

/// The body of a request; the query may add fields that the body lacks.
pub(crate) struct Body<T>(pub(crate) T);

/// The query of a request without a body.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: Fields> FromRequest<Arc<AppState>> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Body<T>, ApiError> {
        let (parts, body) = request.into_parts();
        let bytes = read(body, &state.limits).await?;
        let (mut fields, mut textual) = parse(&parts.headers, &bytes)?;
        for (name, value) in form(parts.uri.query().unwrap_or_default().as_bytes()) {
            if let Entry::Vacant(vacant) = fields.entry(name.clone()) {
                vacant.insert(value);
                textual.insert(name);
            }
        }
        let key = fields.remove(API_KEY);
        admitted(state, &parts, key, || {
            let fields: T = fields::read(fields, &textual)?;
            let cost = fields.cost();
            Ok((fields, cost))
        })
        .map(Body)
    }
}

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query<T>, ApiError> {
        let (fields, textual) = all_as_text(form(parts.uri.query().unwrap_or_default().as_bytes()));
        fields::read(fields, &textual).map(Query)
    }
}

/// Middleware of requests without a body: requires an API key, if the server has keys.
pub(crate) async fn require_key(
    State(state): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let key = form(parts.uri.query().unwrap_or_default().as_bytes()).remove(API_KEY);
    admitted(&state, &parts, key, || Ok(((), Cost::Nothing)))?;
    Ok(next.run(Request::from_parts(parts, body)).await)
}

/// The result of `read`, if the key of the request (field `api_key` or `Authorization: Bearer`) allows its
/// cost.
pub(crate) fn admitted<T>(
    state: &AppState,
    parts: &Parts,
    key: Option<Value>,
    read: impl FnOnce() -> Result<(T, Cost), ApiError>,
) -> Result<T, ApiError> {
    let key = match key {
        Some(Value::String(key)) if !key.is_empty() => Some(key),
        None | Some(Value::Null | Value::String(_)) => bearer(&parts.headers),
        Some(_) => return Err(ApiError::bad_request(format!("`{API_KEY}` must be a string"))),
    };
    let client = parts.extensions.get::<Client>();
    let address = client.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |client| client.address);
    state.keys.admit(&PresentedKey { key, address }, || {
        let (fields, cost) = read()?;
        let Cost::Text { characters, generated } = cost else { return Ok((fields, cost)) };
        let most = state.limits.characters;
        if characters > most {
            return Err(ApiError::too_large(format!(
                "the text has {characters} characters, and {most} are allowed: send less at a time"
            )));
        }
        // A request for more tokens is refused later.
        Ok((fields, Cost::Text { characters, generated: generated.min(state.limits.tokens) }))
    })
}

/// All bytes of a body, within the limits of size and time.
pub(crate) async fn read(body: RawBody, limits: &Limits) -> Result<Bytes, ApiError> {
    let too_large = || {
        let most = limits.body_bytes;
        ApiError::too_large(format!("the request is larger than {most} bytes: send less text at a time"))
    };
    // A body whose declared length is too large is not read at all.
    if body.size_hint().lower() > limits.body_bytes as u64 {
        return Err(too_large());
    }
    let reading = axum::body::to_bytes(body, limits.body_bytes);
    let too_slow = |_| {
        let seconds = limits.client_timeout.as_secs();
        let message = format!("the request did not arrive within {seconds} s: send it faster");
        ApiError::new(StatusCode::REQUEST_TIMEOUT, message)
    };
    let bytes = tokio::time::timeout(limits.client_timeout, reading).await.map_err(too_slow)?;
    bytes.map_err(|_| too_large())
}

/// Fields, and the names of those whose values are text.
pub(crate) type NamedFields = (Map<String, Value>, BTreeSet<String>);

pub(crate) fn all_as_text(fields: Map<String, Value>) -> NamedFields {
    let names = fields.keys().cloned().collect();
    (fields, names)
}

fn parse(headers: &HeaderMap, bytes: &[u8]) -> Result<NamedFields, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        // `curl -d` declares everything as a form.
        "application/x-www-form-urlencoded" if !bytes.trim_ascii_start().starts_with(b"{") => {
            Ok(all_as_text(form(bytes)))
        }
        "multipart/form-data" => {
            let message = "send the fields as JSON or as application/x-www-form-urlencoded";
            Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
        }
        // Without a content type, the body is JSON.
        _ if bytes.iter().all(u8::is_ascii_whitespace) => Ok(NamedFields::default()),
        _ => match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => Ok((fields, BTreeSet::new())),
            // As everywhere, null means absent.
            Ok(Value::Null) => Ok(NamedFields::default()),
            Ok(_) => Err(ApiError::bad_request("the body must be a JSON object")),
            Err(error) => Err(ApiError::bad_request(format!("the body is not JSON: {error}"))),
        },
    }
}

/// The fields of a form; a repeated name has an array of values.
fn form(bytes: &[u8]) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(bytes) {
        let value = Value::String(value.into_owned());
        match fields.get_mut(name.as_ref()) {
            None => {
                fields.insert(name.into_owned(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    fields
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let header = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    // Scheme names are case-insensitive.
    let (scheme, key) = header.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::wire::Texts;

    #[derive(Deserialize)]
    struct Form {
        q: Texts,
        alternatives: usize,
        stream: bool,
    }

    #[test]
    fn the_scheme_name_is_case_insensitive() {
        for (header, expected) in [
            ("Bearer secret", Some("secret")),
            ("bearer secret", Some("secret")),
            ("BEARER   secret ", Some("secret")),
            ("Basic secret", None),
            ("Bearer", None),
            ("secret", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, header.parse().expect("a header"));
            assert_eq!(bearer(&headers).as_deref(), expected, "{header:?}");
        }
    }

    #[test]
    fn forms_and_json_give_the_same_fields() {
        let mut headers = HeaderMap::new();
        let kind = "application/x-www-form-urlencoded; charset=utf-8".parse().expect("a header");
        headers.insert(header::CONTENT_TYPE, kind);
        let bytes = "q=a+b&q=%E4%BD%A0&alternatives=2&stream=true".as_bytes();
        let (fields, textual) = parse(&headers, bytes).expect("a form");
        let form: Form = fields::read(fields, &textual).expect("good fields");
        assert_eq!(form.q, Texts::Many(vec!["a b".to_owned(), "你".to_owned()]));
        assert_eq!((form.alternatives, form.stream), (2, true));
        assert_eq!(parse(&headers, b" {\"q\": \"a\"}").expect("JSON").0["q"], "a");
        assert!(parse(&HeaderMap::new(), b"[1]").is_err());
        assert!(parse(&HeaderMap::new(), b"{\"q\": ").expect_err("cut off").message.contains("line 1"));
        assert!(parse(&HeaderMap::new(), &[0xff, 0xfe]).is_err());
    }
}
