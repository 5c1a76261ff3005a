//! `multipart/form-data`: a file with fields beside it.

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::stream;
use multer::Multipart;
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
        for part in split(bytes, &boundary).await? {
            if part.name == FILE {
                file = Some(File { name: part.file_name, bytes: part.bytes.into() });
            } else {
                let text = String::from_utf8(part.bytes.into());
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
    let boundary = multer::parse_boundary(headers.get(header::CONTENT_TYPE)?.to_str().ok()?);
    boundary.ok().filter(|boundary| !boundary.is_empty())
}

struct Part {
    name: String,
    /// Without folders.
    file_name: String,
    bytes: Bytes,
}

/// The parts of a body that was read within its limits.
async fn split(body: Bytes, boundary: &str) -> Result<Vec<Part>, ApiError> {
    let odd = |why: &dyn Display| ApiError::bad_request(format!("the body is no multipart/form-data: {why}"));
    let mut form = Multipart::new(stream::iter([Ok::<_, Infallible>(body)]), boundary);
    let mut parts = Vec::new();
    while let Some(field) = form.next_field().await.map_err(|error| odd(&error))? {
        let name = field.name().ok_or_else(|| odd(&"a part has no name"))?.to_owned();
        let file_name = field.file_name().unwrap_or_default().rsplit(['/', '\\']).next();
        let file_name = file_name.unwrap_or_default().to_owned();
        parts.push(Part { name, file_name, bytes: field.bytes().await.map_err(|error| odd(&error))? });
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn parts(body: &[u8], boundary: &str) -> Result<Vec<Part>, ApiError> {
        let body = Bytes::copy_from_slice(body);
        // The whole body is there: nothing is waited for.
        split(body, boundary).now_or_never().expect("no wait")
    }

    #[test]
    fn a_form_is_cut_into_its_parts() {
        let body = "--X\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nen\r\n--X\r\n\
                    content-disposition: form-data; name=\"file\"; filename=\"C:\\dir\\a.txt\"\r\nContent-Type: text/plain\r\n\r\n\
                    one\r\n--Y\r\n\r\ntwo\r\n--X--\r\n";
        let cut = parts(body.as_bytes(), "X").expect("a form");
        let found: Vec<_> =
            cut.iter().map(|part| (part.name.as_str(), part.file_name.as_str(), &part.bytes[..])).collect();
        assert_eq!(found, [("source", "", &b"en"[..]), ("file", "a.txt", &b"one\r\n--Y\r\n\r\ntwo"[..])]);
        assert_eq!(parts(b"--X--", "X").expect("nothing").len(), 0);
    }

    #[test]
    fn names_of_files_have_any_characters() {
        for (written, expected) in [
            ("\"Report;v2.html\"", "Report;v2.html"),
            ("\"a=b; name=c.txt\"", "a=b; name=c.txt"),
            ("\"say \\\"hi\\\".txt\"", "say \"hi\".txt"),
            ("\"汽车.html\"", "汽车.html"),
            ("plain.txt", "plain.txt"),
            ("\"\"", ""),
        ] {
            let head = format!("Content-Disposition: form-data; name=\"file\"; filename={written}");
            let body = format!("--X\r\n{head}\r\n\r\none\r\n--X--\r\n");
            let parts = parts(body.as_bytes(), "X").expect("a form");
            assert_eq!((parts[0].name.as_str(), parts[0].file_name.as_str()), ("file", expected));
        }
    }

    #[test]
    fn every_beginning_of_a_form_is_an_error_and_no_panic() {
        let body = "--X\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nen\r\n--X--";
        for end in 0..body.len() {
            assert!(parts(&body.as_bytes()[..end], "X").is_err(), "{end}");
        }
        for odd in ["", "x", "--X\r\n\r\n\r\n--X--", "--X\r\nContent-Disposition: form-data\r\n\r\n\r\n--X--"]
        {
            assert!(parts(odd.as_bytes(), "X").is_err(), "{odd}");
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
