//! Extractors: the fields of a request, from a JSON object, a form or the query. The only way to the fields leads past
//! the key: its rights and rates are checked here, and so are the characters that a request may have.

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

/// The field of the API key, which every body may have.
pub(crate) const API_KEY: &str = "api_key";

/// The fields of a body, which know what the request costs its key.
pub(crate) trait Fields: DeserializeOwned {
    fn cost(&self) -> Cost;
}

/// The body of a request; the query has fields that the body does not have.
pub(crate) struct Body<T>(pub(crate) T);

/// The query of a request without a body.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: Fields> FromRequest<Arc<AppState>> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Body<T>, ApiError> {
        let (parts, body) = request.into_parts();
        let bytes = read(body, &state.limits).await?;
        let (mut fields, mut spelled) = parse(&parts.headers, &bytes)?;
        for (name, value) in form(parts.uri.query().unwrap_or_default().as_bytes()) {
            if let Entry::Vacant(vacant) = fields.entry(name.clone()) {
                vacant.insert(value);
                spelled.insert(name);
            }
        }
        let key = fields.remove(API_KEY);
        admitted(state, &parts, key, || {
            let fields: T = fields::read(fields, &spelled)?;
            let cost = fields.cost();
            Ok((fields, cost))
        })
        .map(Body)
    }
}

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Query<T>, ApiError> {
        let (fields, spelled) = all_spelled(form(parts.uri.query().unwrap_or_default().as_bytes()));
        fields::read(fields, &spelled).map(Query)
    }
}

/// Lets requests without a body pass that have a good API key, if the server needs one.
pub(crate) async fn with_key(
    State(state): State<Arc<AppState>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (parts, body) = request.into_parts();
    let key = form(parts.uri.query().unwrap_or_default().as_bytes()).remove(API_KEY);
    admitted(&state, &parts, key, || Ok(((), Cost::Nothing)))?;
    Ok(next.run(Request::from_parts(parts, body)).await)
}

/// What `read` returns, if the key of the request allows its cost: the field `api_key`, or `Authorization: Bearer`.
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
        // A request for more is refused later.
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

/// Fields, and the names of those that are spelled as text.
pub(crate) type NamedFields = (Map<String, Value>, BTreeSet<String>);

pub(crate) fn all_spelled(fields: Map<String, Value>) -> NamedFields {
    let names = fields.keys().cloned().collect();
    (fields, names)
}

fn parse(headers: &HeaderMap, bytes: &[u8]) -> Result<NamedFields, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        // `curl -d` declares everything as a form.
        "application/x-www-form-urlencoded" if !bytes.trim_ascii_start().starts_with(b"{") => {
            Ok(all_spelled(form(bytes)))
        }
        "multipart/form-data" => {
            let message = "send the fields as JSON or as application/x-www-form-urlencoded";
            Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
        }
        // Without a content type, JSON is meant.
        _ if bytes.iter().all(u8::is_ascii_whitespace) => Ok(NamedFields::default()),
        _ => match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => Ok((fields, BTreeSet::new())),
            // As everywhere, null is what is absent.
            Ok(Value::Null) => Ok(NamedFields::default()),
            Ok(_) => Err(ApiError::bad_request("the body must be a JSON object")),
            Err(error) => Err(ApiError::bad_request(format!("the body is not JSON: {error}"))),
        },
    }
}

/// A form; a name that is repeated has an array of values.
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
    // The names of schemes have no case.
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
    fn the_name_of_the_scheme_has_no_case() {
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
    fn forms_and_json_are_the_same() {
        let mut headers = HeaderMap::new();
        let kind = "application/x-www-form-urlencoded; charset=utf-8".parse().expect("a header");
        headers.insert(header::CONTENT_TYPE, kind);
        let bytes = "q=a+b&q=%E4%BD%A0&alternatives=2&stream=true".as_bytes();
        let (fields, spelled) = parse(&headers, bytes).expect("a form");
        let form: Form = fields::read(fields, &spelled).expect("good fields");
        assert_eq!(form.q, Texts::Many(vec!["a b".to_owned(), "你".to_owned()]));
        assert_eq!((form.alternatives, form.stream), (2, true));
        assert_eq!(parse(&headers, b" {\"q\": \"a\"}").expect("JSON").0["q"], "a");
        assert!(parse(&HeaderMap::new(), b"[1]").is_err());
        assert!(parse(&HeaderMap::new(), b"{\"q\": ").expect_err("cut off").message.contains("line 1"));
        assert!(parse(&HeaderMap::new(), &[0xff, 0xfe]).is_err());
    }
}
