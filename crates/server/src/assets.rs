//! The web page: every file of `web/`, embedded at build time, and the viewer scripts of `heedful::explain`.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use heedful::explain::{VIEWER_FILES, page};
use twox_hash::XxHash3_64;

/// Names and contents, sorted by name.
static ASSETS: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The page may load from this server only, without inline scripts.
const PAGE_POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; style-src 'self'; script-src 'self'; \
                           object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The file at a path. Names are looked up in a list, so path traversal is impossible.
pub(crate) fn serve(path: &str, headers: &HeaderMap) -> Option<Response> {
    let name = match path.strip_prefix('/')? {
        "" => "index.html",
        name => name,
    };
    let contents = contents(name)?;
    let tag = format!("\"{}-{:x}\"", env!("CARGO_PKG_VERSION"), XxHash3_64::oneshot(contents));
    let is_known = headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes());
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { Response::new(Body::from(contents)) };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type(name)));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    Some(response)
}

/// A file of this page or of the explanation viewer, or the whole viewer as one file without sentences.
fn contents(name: &str) -> Option<&'static [u8]> {
    static OFFLINE: LazyLock<String> = LazyLock::new(|| page(&[], "Attention"));
    if name == "offline.html" {
        return Some(OFFLINE.as_bytes());
    }
    let own = ASSETS.iter().find(|(known, _)| *known == name).map(|&(_, contents)| contents);
    let of_viewer =
        || VIEWER_FILES.iter().find(|(known, _)| *known == name).map(|&(_, text)| text.as_bytes());
    own.or_else(of_viewer)
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served_with_its_type() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
        let files = std::fs::read_dir(folder).expect("the page's folder");
        let files = files.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file());
        let own = files.map(|file| file.file_name().expect("a name").to_string_lossy().into_owned());
        for name in own.chain(VIEWER_FILES.iter().map(|(name, _)| (*name).to_owned())) {
            let response = serve(&format!("/{name}"), &HeaderMap::new()).expect("an embedded file");
            let kind = response.headers()[header::CONTENT_TYPE].to_str().expect("text").to_owned();
            assert_ne!(kind, "application/octet-stream", "{name} has no content type");
        }
        assert!(serve("/", &HeaderMap::new()).is_some());
    }
}
