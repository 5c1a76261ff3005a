//! `POST /translate_file` and `GET /download_file/{name}`

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body as ResponseBody, Bytes};
use axum::extract::{Extension, FromRequest, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::stream;
use multer::Multipart;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::translation::translations;
use crate::app::AppState;
use crate::connections::Client;
use crate::downloads::Download;
use crate::error::{ApiError, ErrorBody};
use crate::keys::Cost;
use crate::routes::target::{Languages, by_languages};
use crate::text::Format;
use crate::wire::{
    API_KEY, Json, ModelErrors, RequestErrors, Texts, admitted, all_as_text, read, read_fields, with_type,
};

/// Supported file extensions.
pub(super) const ENDINGS: [&str; 3] = [".txt", ".html", ".htm"];

/// A file to translate: text or HTML, in UTF-8.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a form; the file is read separately from the fields")]
pub(crate) struct TranslateFileRequest {
    /// The file; its extension selects the format, and a file without an extension is text.
    #[schema(content_media_type = "text/plain")]
    file: String,
    /// The code of the source language, or auto to detect it.
    source: String,
    /// The code of the target language.
    target: String,
}

/// The fields besides the file.
#[derive(Deserialize)]
struct FileFields {
    source: String,
    target: String,
}

/// A file with its fields.
pub(crate) struct Upload {
    fields: FileFields,
    /// The file name without folders; may be empty.
    name: String,
    format: Format,
    text: Texts,
}

impl FromRequest<Arc<AppState>> for Upload {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &Arc<AppState>) -> Result<Upload, ApiError> {
        let (parts, body) = request.into_parts();
        let boundary = boundary(&parts.headers).ok_or_else(|| {
            let message = "send the file as multipart/form-data, in the field `file`";
            ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
        })?;
        let (mut fields, mut file) = (Map::new(), None);
        for part in split(read(body, &state.limits).await?, &boundary).await? {
            if part.name == "file" {
                file = Some(part);
            } else {
                fields.insert(part.name.clone(), Value::String(part.text()?));
            }
        }
        let key = fields.remove(API_KEY);
        admitted(state, &parts, key, || {
            let missing = || ApiError::bad_request("`file` is missing; /openapi.json describes the fields");
            let (fields, textual) = all_as_text(fields);
            let (file, fields) = (file.ok_or_else(missing)?, read_fields(fields, &textual)?);
            let (name, format) = (file.file_name.clone(), format(&file.file_name)?);
            let text = file.text()?;
            // A byte order mark is not part of the text.
            let text = Texts::One(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned());
            let cost = Cost::text(text.characters());
            Ok((Upload { fields, name, format, text }, cost))
        })
    }
}

/// The location of the translation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TranslateFileResponse {
    /// A URL of this server, valid for ten minutes.
    translated_file_url: String,
}

/// Translate a file, as LibreTranslate does
#[utoipa::path(
    post, path = "/translate_file", tag = "LibreTranslate",
    request_body(content = TranslateFileRequest, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "The location of the translation", body = TranslateFileResponse),
        RequestErrors,
        ModelErrors,
    )
)]
pub(crate) async fn translate_file(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
    Upload { fields, name, format, text }: Upload,
) -> Result<Json<TranslateFileResponse>, ApiError> {
    let languages = Languages::new(Some(&fields.source), Some(&fields.target));
    let (target, _) = by_languages(&state, &languages, text.all())?;
    let translated = translations(&target, &text, format, 1).await?.swap_remove(0).swap_remove(0);
    let kind = match format {
        Format::Text => "text/plain; charset=utf-8",
        Format::Html => "text/html; charset=utf-8",
    };
    let name = name_of(&name, &fields.target);
    let id = state.downloads.keep(Download { name, kind, bytes: Bytes::from(translated) }, Instant::now());
    let base = state.shared.proxies.base_url(client.peer, &headers);
    Ok(Json(TranslateFileResponse { translated_file_url: format!("{base}/download_file/{id}") }))
}

/// Fetch a translated file
#[utoipa::path(
    get, path = "/download_file/{name}", tag = "LibreTranslate",
    params(("name" = String, Path, description = "The end of a translatedFileUrl")),
    responses(
        (status = 200, description = "The translation", content((String = "text/plain"), (String = "text/html"))),
        (status = 404, description = "There is no such file, or it has expired", body = ErrorBody),
    )
)]
pub(crate) async fn download_file(
    State(state): State<Arc<AppState>>,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    let found = state.downloads.find(&name, Instant::now());
    let missing =
        || ApiError::not_found("there is no such file: files are kept for ten minutes, translate it again");
    let download = found.ok_or_else(missing)?;
    let mut response = with_type(ResponseBody::from(download.bytes), download.kind);
    // Never shown as a page of this server, because the content is untrusted.
    let headers = response.headers_mut();
    if let Ok(disposition) = HeaderValue::from_str(&attachment(&download.name)) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    Ok(response)
}

/// The boundary between the parts.
fn boundary(headers: &HeaderMap) -> Option<String> {
    let boundary = multer::parse_boundary(headers.get(header::CONTENT_TYPE)?.to_str().ok()?);
    boundary.ok().filter(|boundary| !boundary.is_empty())
}

/// A part of a form.
struct FormPart {
    name: String,
    /// The file name without folders.
    file_name: String,
    bytes: Bytes,
}

impl FormPart {
    fn text(self) -> Result<String, ApiError> {
        let not_utf8 =
            |_| ApiError::bad_request(format!("`{}` is not UTF-8: save it in this encoding", self.name));
        String::from_utf8(self.bytes.into()).map_err(not_utf8)
    }
}

/// The parts of a complete body.
async fn split(body: Bytes, boundary: &str) -> Result<Vec<FormPart>, ApiError> {
    let invalid =
        |why: &dyn Display| ApiError::bad_request(format!("the body is not multipart/form-data: {why}"));
    let mut form = Multipart::new(stream::iter([Ok::<_, Infallible>(body)]), boundary);
    let mut parts = Vec::new();
    while let Some(field) = form.next_field().await.map_err(|error| invalid(&error))? {
        let name = field.name().ok_or_else(|| invalid(&"a part has no name"))?.to_owned();
        let file_name = field.file_name().unwrap_or_default().rsplit(['/', '\\']).next();
        let file_name = file_name.unwrap_or_default().to_owned();
        parts.push(FormPart {
            name,
            file_name,
            bytes: field.bytes().await.map_err(|error| invalid(&error))?,
        });
    }
    Ok(parts)
}

fn format(name: &str) -> Result<Format, ApiError> {
    let ending = name.rsplit_once('.').map(|(_, ending)| format!(".{}", ending.to_ascii_lowercase()));
    match ending.as_deref() {
        None | Some(".txt") => Ok(Format::Text),
        Some(".html" | ".htm") => Ok(Format::Html),
        Some(other) => {
            let other: String = other.chars().take(20).collect();
            let message = format!("`file`: {other} cannot be translated; send one of {}", ENDINGS.join(", "));
            Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
        }
    }
}

/// A `Content-Disposition` (RFC 6266): a non-ASCII name is also sent in the RFC 5987 encoding, which browsers
/// prefer.
fn attachment(name: &str) -> String {
    let mut ascii: String = name.chars().filter(char::is_ascii).collect();
    if ascii == name {
        return format!("attachment; filename=\"{name}\"");
    }
    if ascii.starts_with('_') {
        ascii.insert_str(0, "translation");
    }
    let encoded: String = name
        .bytes()
        .map(|byte| match byte {
            b'-' | b'.' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect();
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{encoded}")
}

/// `letter.txt` becomes `letter_de.txt`. Keeps only characters that are valid in every file system: ASCII
/// letters, digits and `-_ `, and all non-ASCII characters except control and bidirectional formatting
/// characters.
fn name_of(name: &str, target: &str) -> String {
    let is_allowed = |c: &char| match c {
        '-' | '_' | ' ' => true,
        c if c.is_ascii() => c.is_ascii_alphanumeric(),
        c => {
            !c.is_control() && !matches!(c, '\u{61c}' | '\u{2000}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..)
        }
    };
    let clean = |text: &str| -> String { text.chars().filter(is_allowed).take(80).collect() };
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "txt"));
    let stem = Some(clean(stem)).filter(|stem| !stem.is_empty()).unwrap_or_else(|| "translation".to_owned());
    format!("{stem}_{}.{}", clean(target), clean(ending))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn file_names_of_translations_are_safe() {
        for (name, expected) in [
            ("letter.txt", "letter_de.txt"),
            ("a \"b\"\r\nX: y.html", "a bX y_de.html"),
            ("", "translation_de.txt"),
            ("信.htm", "信_de.htm"),
            ("\u{202e}gepj\u{85}.txt", "gepj_de.txt"),
        ] {
            assert_eq!(name_of(name, "de"), expected);
        }
    }

    fn parts(body: &[u8], boundary: &str) -> Result<Vec<FormPart>, ApiError> {
        let body = Bytes::copy_from_slice(body);
        // The whole body is in memory, so the future is ready at once.
        split(body, boundary).now_or_never().expect("a ready future")
    }

    #[test]
    fn a_form_is_split_into_its_parts() {
        let body = "--X\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nen\r\n--X\r\n\
                    content-disposition: form-data; name=\"file\"; filename=\"C:\\dir\\a.txt\"\r\nContent-Type: text/plain\r\n\r\n\
                    one\r\n--Y\r\n\r\ntwo\r\n--X--\r\n";
        let split = parts(body.as_bytes(), "X").expect("a form");
        let found: Vec<_> =
            split.iter().map(|part| (part.name.as_str(), part.file_name.as_str(), &part.bytes[..])).collect();
        assert_eq!(found, [("source", "", &b"en"[..]), ("file", "a.txt", &b"one\r\n--Y\r\n\r\ntwo"[..])]);
        assert_eq!(parts(b"--X--", "X").expect("nothing").len(), 0);
    }

    #[test]
    fn file_names_may_contain_any_characters() {
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
    fn every_truncated_form_is_an_error_without_panic() {
        let body = "--X\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nen\r\n--X--";
        for end in 0..body.len() {
            assert!(parts(&body.as_bytes()[..end], "X").is_err(), "{end}");
        }
        for invalid in
            ["", "x", "--X\r\n\r\n\r\n--X--", "--X\r\nContent-Disposition: form-data\r\n\r\n\r\n--X--"]
        {
            assert!(parts(invalid.as_bytes(), "X").is_err(), "{invalid}");
        }
    }

    #[test]
    fn the_boundary_is_read_from_the_header() {
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

    #[test]
    fn file_names_keep_non_ascii_letters() {
        for (name, expected) in [
            ("letter.txt", r#"attachment; filename="letter_de.txt""#),
            (
                "päge 1.html",
                r#"attachment; filename="pge 1_de.html"; filename*=UTF-8''p%C3%A4ge%201_de.html"#,
            ),
            ("信.htm", r#"attachment; filename="translation_de.htm"; filename*=UTF-8''%E4%BF%A1_de.htm"#),
        ] {
            assert_eq!(attachment(&name_of(name, "de")), expected);
        }
    }
}
