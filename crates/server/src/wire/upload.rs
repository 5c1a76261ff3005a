//! `multipart/form-data`: a file with fields beside it.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::body::{API_KEY, all_spelled, presented, read};
use super::fields;
use crate::app::AppState;
use crate::error::ApiError;
use crate::keys::AcceptedKey;

/// The file of a request and its other fields.
pub(crate) struct Upload<T> {
    pub(crate) fields: T,
    pub(crate) file: File,
    pub(crate) key: AcceptedKey,
}

/// A file as it was sent.
pub(crate) struct File {
    /// Without folders; empty if it has none.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// The field of the file.
const FILE: &str = "file";

impl<T: DeserializeOwned> FromRequest<Arc<AppState>> for Upload<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Upload<T>, ApiError> {
        let (parts, body) = request.into_parts();
        let boundary = boundary(&parts.headers).ok_or_else(|| {
            let message = "send the file as multipart/form-data, in the field `file`";
            ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
        })?;
        let bytes = read(body, &state.limits).await?;
        let (mut fields, mut file) = (Map::new(), None);
        for part in split(&bytes, &boundary)? {
            if part.name == FILE {
                file = Some(File { name: part.file_name, bytes: part.bytes.to_vec() });
            } else {
                let text = String::from_utf8(part.bytes.to_vec());
                let text =
                    text.map_err(|_| ApiError::bad_request(format!("`{}` is not UTF-8", part.name)))?;
                fields.insert(part.name, Value::String(text));
            }
        }
        let key = state.keys.accept(&presented(fields.remove(API_KEY), &parts)?)?;
        let (fields, spelled) = all_spelled(fields);
        let file = file
            .ok_or_else(|| ApiError::bad_request("`file` is missing; /openapi.json describes the fields"))?;
        Ok(Upload { fields: fields::read(fields, &spelled)?, file, key })
    }
}

/// The line between the parts.
fn boundary(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let (name, parameters) = kind.split_once(';')?;
    if !name.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    parameter(parameters, "boundary").filter(|boundary| !boundary.is_empty())
}

struct Part<'b> {
    name: String,
    file_name: String,
    bytes: &'b [u8],
}

fn split<'b>(body: &'b [u8], boundary: &str) -> Result<Vec<Part<'b>>, ApiError> {
    let odd = || {
        ApiError::bad_request("the body is no multipart/form-data: its parts do not end where they should")
    };
    let line = format!("--{boundary}");
    let mut rest = body.strip_prefix(line.as_bytes()).ok_or_else(odd)?;
    let end = format!("\r\n{line}");
    let mut parts = Vec::new();
    while !rest.starts_with(b"--") {
        rest = rest.strip_prefix(b"\r\n").ok_or_else(odd)?;
        let head = find(rest, b"\r\n\r\n").ok_or_else(odd)?;
        let content = &rest[head + 4..];
        let length = find(content, end.as_bytes()).ok_or_else(odd)?;
        let head = String::from_utf8_lossy(&rest[..head]);
        let disposition = head.split("\r\n").find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
        });
        let disposition = disposition.ok_or_else(odd)?;
        let file_name = parameter(disposition, "filename").unwrap_or_default();
        parts.push(Part {
            name: parameter(disposition, "name").ok_or_else(odd)?,
            file_name: file_name.rsplit(['/', '\\']).next().unwrap_or_default().to_owned(),
            bytes: &content[..length],
        });
        rest = &content[length + end.len()..];
    }
    Ok(parts)
}

/// The value of `name=value` or `name="value"` in a header.
fn parameter(header: &str, name: &str) -> Option<String> {
    header.split(';').find_map(|parameter| {
        let (known, value) = parameter.split_once('=')?;
        known.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"').to_owned())
    })
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|found| found == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_cut_into_its_parts() {
        let body = "--X\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nen\r\n--X\r\n\
                    content-disposition: form-data; name=\"file\"; filename=\"C:\\dir\\a.txt\"\r\nContent-Type: text/plain\r\n\r\n\
                    one\r\n--Y\r\n\r\ntwo\r\n--X--\r\n";
        let parts = split(body.as_bytes(), "X").expect("a form");
        let found: Vec<_> =
            parts.iter().map(|part| (part.name.as_str(), part.file_name.as_str(), part.bytes)).collect();
        assert_eq!(found, [("source", "", &b"en"[..]), ("file", "a.txt", &b"one\r\n--Y\r\n\r\ntwo"[..])]);
        assert_eq!(split(b"--X--", "X").expect("nothing").len(), 0);
    }

    #[test]
    fn every_beginning_of_a_form_is_an_error_and_no_panic() {
        let body = "--X\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nen\r\n--X--";
        for end in 0..body.len() {
            assert!(split(&body.as_bytes()[..end], "X").is_err(), "{end}");
        }
        for odd in ["", "x", "--X\r\n\r\n\r\n--X--", "--X\r\nContent-Disposition: form-data\r\n\r\n\r\n--X--"]
        {
            assert!(split(odd.as_bytes(), "X").is_err(), "{odd}");
        }
    }

    #[test]
    fn the_boundary_is_in_the_header() {
        for (kind, expected) in [
            ("multipart/form-data; boundary=abc", Some("abc")),
            ("Multipart/Form-Data; charset=utf-8; boundary=\"a b\"", Some("a b")),
            ("multipart/form-data", None),
            ("multipart/form-data; boundary=", None),
            ("application/json; boundary=abc", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, kind.parse().expect("a header"));
            assert_eq!(boundary(&headers).as_deref(), expected, "{kind}");
        }
    }
}
