//! Files, in the form that LibreTranslate's clients send.

use heedful_server::Server;
use serde_json::json;

use crate::client::{Reply, get, post, request, send};
use crate::models::serving;

/// Uploads a file with fields.
fn upload(server: &Server, name: &str, content: &[u8], fields: &[(&str, &str)]) -> Reply {
    let mut body = Vec::new();
    for (field, value) in fields {
        let part = format!("--X\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    let head = format!("--X\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n");
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(content);
    body.extend_from_slice(b"\r\n--X--\r\n");
    let mut bytes = format!(
        "POST /translate_file HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=X\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(&body);
    send(server.address(), &bytes)
}

const LANGUAGES: [(&str, &str); 2] = [("source", "zh"), ("target", "en")];

#[test]
fn files_are_translated_like_texts() {
    let (server, _folder) = serving();
    for (name, content, format, kind, saved_as) in [
        ("letter.txt", "一辆汽车。\n\n一套房子。\n", "text", "text/plain; charset=utf-8", "letter_en.txt"),
        ("no ending", "一辆汽车", "text", "text/plain; charset=utf-8", "no ending_en.txt"),
        ("PAGE.HTML", "<p>一辆<b>汽车</b></p>", "html", "text/html; charset=utf-8", "PAGE_en.HTML"),
        ("empty.txt", "", "text", "text/plain; charset=utf-8", "empty_en.txt"),
        ("Report;v2.html", "<p>一辆<b>汽车</b></p>", "html", "text/html; charset=utf-8", "Reportv2_en.html"),
    ] {
        let reply = upload(&server, name, content.as_bytes(), &LANGUAGES);
        assert_eq!(reply.status, 200, "{name}: {}", reply.body);
        let address = reply.json()["translatedFileUrl"].as_str().expect("an address").to_owned();
        let path = address.strip_prefix("http://localhost").expect("an address of this server");
        let file = get(&server, path);
        let body = json!({"q": content, "source": "zh", "target": "en", "format": format});
        assert_eq!(file.body, post(&server, "/translate", &body).json()["translatedText"], "{name}");
        assert_eq!(file.header("content-type"), Some(kind));
        assert_eq!(
            file.header("content-disposition"),
            Some(format!("attachment; filename=\"{saved_as}\"").as_str())
        );
        assert!(file.header("content-security-policy").is_some_and(|policy| policy.contains("sandbox")));
    }
    assert_eq!(get(&server, "/download_file/0").status, 404);
    let marked = upload(&server, "a.txt", "\u{feff}一辆汽车".as_bytes(), &LANGUAGES);
    assert_eq!(marked.status, 200, "a byte order mark is not part of the text");
}

#[test]
fn unsupported_files_are_refused_with_an_error() {
    let (server, _folder) = serving();
    let many = "一。".repeat(3000);
    for (name, content, fields, status, part) in [
        (
            "a.docx",
            &b"PK"[..],
            &LANGUAGES[..],
            415,
            ".docx cannot be translated; send one of .txt, .html, .htm",
        ),
        ("a.txt", &b"\xff\xfe"[..], &LANGUAGES[..], 400, "`file` is not UTF-8"),
        ("a.txt", &b"x"[..], &LANGUAGES[..1], 400, "`target` is missing"),
        (
            "a.txt",
            &b"x"[..],
            &[("source", "fr"), ("target", "en")][..],
            400,
            "no model translates from fr to en",
        ),
        ("a.txt", many.as_bytes(), &LANGUAGES[..], 413, "3000 sentences"),
    ] {
        let reply = upload(&server, name, content, fields);
        assert_eq!(reply.status, status, "{name}: {}", reply.body);
        assert!(reply.error().contains(part), "{}", reply.error());
    }
    for (kind, body, status, part) in [
        ("application/json", "{}", 415, "send the file as multipart/form-data"),
        ("multipart/form-data; boundary=X", "--Y", 400, "not multipart/form-data"),
        ("multipart/form-data; boundary=X", "--X--", 400, "`file` is missing"),
    ] {
        let reply = send(server.address(), request("POST", "/translate_file", kind, body).as_bytes());
        assert_eq!(reply.status, status, "{body}: {}", reply.body);
        assert!(reply.error().contains(part), "{}", reply.error());
    }
}
