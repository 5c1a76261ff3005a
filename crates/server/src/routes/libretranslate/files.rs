//! `POST /translate_file` and `GET /download_file/{name}`

use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body as ResponseBody, Bytes};
use axum::extract::{Extension, Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::work::translations;
use crate::app::AppState;
use crate::connections::Client;
use crate::downloads::Download;
use crate::error::{ApiError, ErrorBody};
use crate::routes::model_selection::{Languages, by_languages};
use crate::routes::tokenize::check_characters;
use crate::text::Format;
use crate::wire::{Json, ModelErrors, RequestErrors, Texts, Upload, with_type};

/// Endings of the files that can be translated.
pub(super) const ENDINGS: [&str; 3] = [".txt", ".html", ".htm"];

/// A file to translate: text or HTML, in UTF-8.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a form; its file is read apart from its fields")]
pub(crate) struct TranslateFileRequest {
    /// The file; the ending of its name decides how it is read, and one without an ending is text.
    #[schema(content_media_type = "text/plain")]
    file: String,
    /// The code of the source language, or auto to detect it.
    source: String,
    /// The code of the target language.
    target: String,
}

/// What stands beside the file.
#[derive(Deserialize)]
pub(crate) struct FileFields {
    source: String,
    target: String,
}

/// Where the translation is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TranslateFileResponse {
    /// An address of this server, for ten minutes.
    translated_file_url: String,
}

/// Translate a file, as LibreTranslate does
#[utoipa::path(
    post,
    path = "/translate_file",
    tag = "LibreTranslate",
    request_body(content = TranslateFileRequest, content_type = "multipart/form-data"),
    responses(
        (status = 200, description = "Where the translation is", body = TranslateFileResponse),
        RequestErrors,
        ModelErrors,
    )
)]
pub(crate) async fn translate_file(
    State(state): State<Arc<AppState>>,
    Extension(client): Extension<Client>,
    headers: HeaderMap,
    Upload { fields, file, key }: Upload<FileFields>,
) -> Result<Json<TranslateFileResponse>, ApiError> {
    let format = format(&file.name)?;
    let not_utf8 = |_| ApiError::bad_request("`file` is not UTF-8: save it in this encoding");
    let text = String::from_utf8(file.bytes).map_err(not_utf8)?;
    // An editor's sign that this is UTF-8 is no text.
    let texts = Texts::One(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned());
    check_characters(&state, texts.characters())?;
    state.keys.admit(key, texts.characters())?;

    let languages = Languages::new(Some(&fields.source), Some(&fields.target));
    let (served, _) = by_languages(&state, &languages, texts.all())?;
    let translated = translations(&state, served, &texts, format, 1).await?.swap_remove(0).swap_remove(0);
    let download = Download {
        name: name_of(&file.name, &fields.target),
        kind: match format {
            Format::Text => "text/plain; charset=utf-8",
            Format::Html => "text/html; charset=utf-8",
        },
        bytes: Bytes::from(translated),
    };
    let id = state.downloads.keep(download, Instant::now());
    let base = state.front.proxies.base_url(client.peer, &headers);
    Ok(Json(TranslateFileResponse { translated_file_url: format!("{base}/download_file/{id}") }))
}

/// Fetch a translated file
#[utoipa::path(
    get,
    path = "/download_file/{name}",
    tag = "LibreTranslate",
    params(("name" = String, Path, description = "The end of a translatedFileUrl")),
    responses(
        (status = 200, description = "The translation", content((String = "text/plain"), (String = "text/html"))),
        (status = 404, description = "There is no such file, or it was too long ago", body = ErrorBody),
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
    // Never shown as a page of this server: what is in it may be anybody's.
    let headers = response.headers_mut();
    if let Ok(disposition) = HeaderValue::from_str(&attachment(&download.name)) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    Ok(response)
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

/// A `Content-Disposition` (RFC 6266): a name of more than ASCII also as RFC 5987 encodes it, which browsers prefer.
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

/// `letter.txt` becomes `letter_de.txt`. Only characters that no file system minds: of ASCII letters, digits and `-_ `, of the rest
/// all but signs that control or turn text.
fn name_of(name: &str, target: &str) -> String {
    let is_harmless = |c: &char| match c {
        '-' | '_' | ' ' => true,
        c if c.is_ascii() => c.is_ascii_alphanumeric(),
        c => {
            !c.is_control() && !matches!(c, '\u{61c}' | '\u{2000}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..)
        }
    };
    let clean = |text: &str| -> String { text.chars().filter(is_harmless).take(80).collect() };
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "txt"));
    let stem = Some(clean(stem)).filter(|stem| !stem.is_empty()).unwrap_or_else(|| "translation".to_owned());
    format!("{stem}_{}.{}", clean(target), clean(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_translations_are_harmless() {
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

    #[test]
    fn names_keep_letters_that_are_not_ascii() {
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
