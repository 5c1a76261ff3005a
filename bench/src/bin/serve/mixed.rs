//! Requests of every kind and length, including malformed and hostile ones.

use serde_json::{Value, json};

/// The number of different requests: too many for a small cache to help.
const REQUESTS: usize = 2000;

/// The requests, in mixed order.
pub(super) fn requests(texts: &[String]) -> Vec<Vec<u8>> {
    (0..REQUESTS).map(|number| request(number, texts)).collect()
}

fn request(number: usize, texts: &[String]) -> Vec<u8> {
    let text = |offset: usize| texts[(7 * number + offset) % texts.len()].as_str();
    // One in forty has a hundred sentences.
    let sentences = if number % 40 == 7 { 100 } else { 1 + number % 5 };
    let long: String = (0..sentences).map(|offset| format!("{}。", text(offset))).collect();
    let translate = |text: &str| json!({"q": text, "source": "zh", "target": "en"});
    let with = |mut body: Value, name: &str, value: Value| {
        body[name] = value;
        body
    };
    let page = format!("<p>{} <b>{}</b><br>{}<i>{}</i></p>", text(0), text(1), text(2), text(3));
    match number % 20 {
        0 | 1 => post("/translate", &translate(text(0))),
        2 | 3 => post("/translate", &translate(&long)),
        4 => post("/translate", &with(translate(&page), "format", json!("html"))),
        5 => post("/translate", &with(translate(text(0)), "alternatives", json!(1 + number % 7))),
        6 => post("/translate", &with(translate(text(0)), "source", json!("auto"))),
        7 => post("/v1/translate", &json!({"text": long, "attention": "packed"})),
        8 => post("/v1/translate", &json!({"text": text(0), "attention": "rows", "n_best": 4})),
        9 => post("/v1/translate", &json!({"text": long, "stream": true})),
        10 => post(
            "/v1/translate",
            &json!({"text": [text(0), text(1), ""], "beam": 1 + number % 16, "n_best": 1}),
        ),
        11 => post("/detect", &json!({"q": long})),
        12 => get("/metrics"),
        13 => get("/openapi.json"),
        14 => get(["/", "/languages", "/v1/models", "/frontend/settings", "/app.js"][number / 20 % 5]),
        15 => post("/v1/translate", &json!({"text": text(0), "beams": 3})),
        16 => post("/translate", &translate(&"字".repeat(200_001))),
        17 => get(&format!("/nothing/{number}")),
        18 => file(&long),
        _ => raw("POST /translate", "application/json", "{\"q\": "),
    }
}

fn post(path: &str, body: &Value) -> Vec<u8> {
    raw(&format!("POST {path}"), "application/json", &body.to_string())
}

fn get(path: &str) -> Vec<u8> {
    raw(&format!("GET {path}"), "text/plain", "")
}

fn file(text: &str) -> Vec<u8> {
    let field = |name: &str, value: &str| {
        format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let body = format!("{}{}{}--X--", field("source", "zh"), field("target", "en"), field("file", text));
    raw("POST /translate_file", "multipart/form-data; boundary=X", &body)
}

fn raw(line: &str, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
