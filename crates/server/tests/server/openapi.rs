//! `/openapi.json` matches the server: every route is described, and every response has the described schema.

use std::collections::BTreeSet;

use heedful_server::{ModelSpec, Server};
use serde_json::{Value, json};

use crate::client::{get, post, request, send};
use crate::models::{classifier, language, masked, options, serving, translator};
use crate::schema::Schemas;

pub(crate) const ROUTES: [&str; 23] = [
    "/detect",
    "/download_file/{name}",
    "/frontend/settings",
    "/health",
    "/health/live",
    "/health/ready",
    "/languages",
    "/metrics",
    "/openapi.json",
    "/translate",
    "/translate_file",
    "/v1/classify",
    "/v1/fill",
    "/v1/generate",
    "/v1/models",
    "/v1/reload",
    "/v1/runs",
    "/v1/runs/{name}/attention",
    "/v1/runs/{name}/heads",
    "/v1/runs/{name}/metrics",
    "/v1/runs/{name}/plan",
    "/v1/runs/{name}/report",
    "/v1/translate",
];

fn operations(description: &Value) -> impl Iterator<Item = (&String, &String, &Value)> {
    let paths = description["paths"].as_object().expect("paths");
    paths.iter().flat_map(|(path, methods)| {
        methods.as_object().expect("methods").iter().map(move |(method, operation)| (path, method, operation))
    })
}

#[test]
fn the_description_has_every_route_and_the_right_version() {
    let (server, _folder) = serving();
    let description = get(&server, "/openapi.json").json();
    assert_eq!(description["info"]["version"], env!("CARGO_PKG_VERSION"));
    let paths: Vec<&str> =
        description["paths"].as_object().expect("paths").keys().map(String::as_str).collect();
    assert_eq!(paths, ROUTES);
    for (path, methods) in description["paths"].as_object().expect("paths") {
        let address = path.replace("{name}", "x");
        for method in ["GET", "POST", "DELETE"] {
            let reply =
                send(server.address(), request(method, &address, "application/json", "{}").as_bytes());
            let is_described = methods.get(method.to_ascii_lowercase()).is_some();
            assert_eq!(reply.status != 405, is_described, "{method} {path}: {}", reply.body);
            assert!(!reply.body.contains("nothing at this address"), "{method} {path}");
            if is_described {
                let status = reply.status.to_string();
                let described = &methods[method.to_ascii_lowercase()]["responses"][&status];
                assert!(described["description"].is_string(), "{method} {path} answers {status}");
            }
        }
    }
}

#[test]
fn the_description_is_complete() {
    let (server, _folder) = serving();
    let description = get(&server, "/openapi.json").json();
    let schemas = Schemas::new(&description);
    schemas.check_references();
    let mut names = BTreeSet::new();
    for (path, method, operation) in operations(&description) {
        assert!(operation["summary"].is_string(), "{method} {path} has no summary");
        assert!(
            names.insert(operation["operationId"].as_str().expect("a name")),
            "{method} {path}: name twice"
        );
        assert!(operation["responses"]["200"]["content"].is_object(), "{method} {path}");
        let Some(bodies) = operation["requestBody"]["content"].as_object() else { continue };
        assert!(bodies.contains_key("application/json") || path == "/translate_file", "{method} {path}");
        for body in bodies.values() {
            // An optional body is a choice between null and an object.
            let choices = body["schema"]["oneOf"].as_array();
            let object =
                choices.and_then(|choices| choices.iter().find(|choice| choice.get("$ref").is_some()));
            let schema = object.unwrap_or(&body["schema"]);
            let fields = schemas.fields(schema);
            assert!(fields.contains_key("api_key"), "{method} {path}: {fields:?}");
        }
    }
    for (name, schema) in description["components"]["schemas"].as_object().expect("schemas") {
        for (field, described) in schemas.fields(schema) {
            // A reference is described at its target, and so is a choice that contains one.
            let has_words =
                |described: &Value| described.get("description").is_some() || described.get("$ref").is_some();
            let choices = described["oneOf"].as_array().or(described["anyOf"].as_array());
            let is_described = has_words(&described) || choices.is_some_and(|all| all.iter().any(has_words));
            assert!(is_described, "{name}.{field} has no description");
        }
    }
    let words = description["info"]["description"].as_str().expect("text");
    assert!(words.contains("200000 characters") && words.contains("2000 sentences"), "{words}");
}

#[test]
fn responses_have_the_described_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    translator(&at("one"), 1);
    classifier(&at("labels"));
    language(&at("writer"));
    masked(&at("reader"));
    let named = |name: &str, folder: &str| ModelSpec::named(name, at(folder));
    let models = vec![
        named("zh-en", "one"),
        named("mood", "labels"),
        named("writer", "writer"),
        named("reader", "reader"),
    ];
    let server = Server::start(options(models)).expect("a server");
    let description = get(&server, "/openapi.json").json();
    let schemas = Schemas::new(&description);
    let check = |method: &str, path: &str, reply: crate::client::Reply| {
        let response = &description["paths"][path][method]["responses"][reply.status.to_string()];
        let content = response["content"].as_object().unwrap_or_else(|| panic!("{path}: {}", reply.status));
        let kind = reply.header("content-type").expect("a type").split(';').next().expect("a type");
        let schema = &content.get(kind).unwrap_or_else(|| panic!("{path}: {kind}"))["schema"];
        if kind == "text/event-stream" {
            let schema = &schema["properties"]["data"]["contentSchema"];
            for (name, data) in reply.events() {
                schemas.check(schema, &data).unwrap_or_else(|odd| panic!("{path}, event {name}: {odd}"));
            }
        } else if kind == "application/json" {
            schemas.check(schema, &reply.json()).unwrap_or_else(|odd| panic!("{path}: {odd}"));
        }
        reply.status
    };
    for path in [
        "/languages",
        "/frontend/settings",
        "/v1/models",
        "/v1/runs",
        "/health",
        "/health/live",
        "/health/ready",
        "/metrics",
    ] {
        assert_eq!(check("get", path, get(&server, path)), 200);
    }
    for (path, body, status) in [
        ("/translate", json!({"q": "一辆", "source": "zh", "target": "en"}), 200),
        (
            "/translate",
            json!({"q": ["一辆", "两"], "source": "auto", "target": "en", "alternatives": 1}),
            200,
        ),
        ("/translate", json!({"q": "一辆", "source": "fr", "target": "en"}), 400),
        ("/detect", json!({"q": "这是一套自动驾驶解决方案。"}), 200),
        (
            "/v1/translate",
            json!({"text": "一辆。两", "attention": "rows", "n_best": 2, "source": "auto"}),
            200,
        ),
        ("/v1/translate", json!({"text": ["一辆"], "attention": "packed"}), 200),
        ("/v1/translate", json!({"text": ["一辆"], "alternatives": 3}), 200),
        ("/v1/translate", json!({"text": ["一辆"], "alternatives": 1000}), 400),
        ("/v1/translate", json!({"text": ["一辆"], "stream": true}), 200),
        ("/v1/translate", json!({"text": "一辆", "attention": "rows", "raw_scores": true}), 200),
        ("/v1/translate", json!({"text": "一辆", "raw_scores": true}), 400),
        ("/v1/translate", json!({"text": "一辆", "model": "x"}), 404),
        ("/v1/classify", json!({"text": ["good", " "]}), 200),
        ("/v1/classify", json!({"text": "good", "attention": "rows", "raw_scores": true}), 200),
        ("/v1/classify", json!({"text": "good", "attention": "packed", "raw_scores": true}), 200),
        ("/v1/classify", json!({"text": "good", "raw_scores": true}), 400),
        ("/v1/generate", json!({"prompt": "a car", "tokens": 5, "attention": "packed"}), 200),
        ("/v1/generate", json!({"tokens": 3, "n_best": 2, "attention": "rows", "raw_scores": true}), 200),
        ("/v1/generate", json!({"prompt": "a", "tokens": 3, "attention": "rows", "stream": true}), 200),
        ("/v1/fill", json!({"text": ["a <mask>", "<mask> car <mask>"], "top": 2}), 200),
        ("/v1/fill", json!({"text": "a <mask>", "attention": "rows", "raw_scores": true}), 200),
        ("/v1/fill", json!({"text": "a <mask>", "top": 0}), 400),
        ("/v1/fill", json!({"text": "a car"}), 400),
        ("/v1/fill", json!({"text": "a <mask>", "top": 101}), 400),
        ("/v1/generate", json!({"prompt": "a car", "tokens": 5, "n_best": 2}), 200),
        ("/v1/generate", json!({"prompt": "a car", "tokens": 5, "stream": true}), 200),
        ("/v1/generate", json!({"prompt": "a car", "tokens": 5, "alternatives": 2}), 200),
        ("/v1/generate", json!({"tokens": 1_000_000}), 400),
        ("/v1/reload", json!({}), 403),
        ("/translate_file", json!({}), 415),
    ] {
        assert_eq!(check("post", path, post(&server, path, &body)), status, "{path} {body}");
    }
    server.drain();
    assert_eq!(check("get", "/health/ready", get(&server, "/health/ready")), 503);
}
