//! No request can take unbounded memory: every route that accepts text, with its status and message.

use heedful_server::{Limits, ModelSpec, Server, ServerOptions};
use serde_json::{Value, json};

use crate::client::post;
use crate::models::{classifier, language, options, translator};

#[test]
fn texts_with_too_many_tokens_get_413_from_every_route() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    translator(&at("zh-en"), 4);
    classifier(&at("mood"));
    language(&at("writer"));
    let models = ["zh-en", "mood", "writer"].map(|name| ModelSpec::named(name, at(name))).to_vec();
    let server = Server::start(options(models.clone())).expect("a server");
    // A sentence has at most 600 characters: here of four bytes each, none of them in the vocabulary.
    let emoji = "🙂".repeat(590);
    let words = "a ".repeat(60_000);
    let cases: [(&str, Value, u16, &str); 8] = [
        (
            "/v1/translate",
            json!({"text": ["一辆汽车", emoji]}),
            413,
            "sentence 2: the text has 2360 tokens, and the model reads",
        ),
        (
            "/translate",
            json!({"q": emoji, "source": "zh", "target": "en"}),
            413,
            "sentence 1: the text has 2360 tokens",
        ),
        ("/v1/classify", json!({"text": words}), 413, "text 1: the text has"),
        (
            "/v1/classify",
            json!({"text": ["good", "a ".repeat(1000)]}),
            413,
            "text 2: the text has 2000 tokens",
        ),
        ("/v1/generate", json!({"prompt": words, "tokens": 3}), 413, "`prompt`: the text has"),
        (
            "/v1/generate",
            json!({"prompt": "a ".repeat(1000), "tokens": 3}),
            413,
            "2000 tokens, and the model reads 1024 at a time",
        ),
        ("/v1/translate", json!({"text": "一辆汽车"}), 200, ""),
        ("/v1/classify", json!({"text": "a ".repeat(400)}), 200, ""),
    ];
    for (route, body, status, message) in &cases {
        let reply = post(&server, route, body);
        assert_eq!(reply.status, *status, "{route}: {}", reply.body);
        if *status != 200 {
            assert!(reply.error().contains(message), "{route}: {}", reply.error());
        }
    }

    let limits = Limits { text_tokens: Some(16), ..Limits::default() };
    let server = Server::start(ServerOptions { limits, ..options(models) }).expect("a server");
    let reply = post(&server, "/v1/classify", &json!({"text": "a text of more than sixteen tokens"}));
    assert_eq!(
        (reply.status, reply.error().contains("the model reads 16 at a time")),
        (413, true),
        "{}",
        reply.body
    );
    assert_eq!(post(&server, "/v1/classify", &json!({"text": "short"})).status, 200);
}

#[test]
fn numbers_of_a_request_are_checked_before_any_computation() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    translator(&at("zh-en"), 4);
    language(&at("writer"));
    let models = ["zh-en", "writer"].map(|name| ModelSpec::named(name, at(name))).to_vec();
    let server = Server::start(options(models)).expect("a server");
    let text = "一辆汽车。".repeat(30_000 / 5);
    let sentence = format!("{}。", "车".repeat(590)).repeat(100);
    for (route, body, status) in [
        ("/v1/translate", json!({"text": "一", "beam": 0}), 400),
        ("/v1/translate", json!({"text": "一", "beam": 1_000_000}), 400),
        ("/v1/translate", json!({"text": "一", "n_best": 0}), 400),
        ("/v1/translate", json!({"text": "一", "n_best": 1_000_000}), 400),
        ("/v1/translate", json!({"text": text}), 413),
        ("/v1/translate", json!({"text": sentence, "attention": "rows"}), 413),
        ("/v1/generate", json!({"prompt": "a", "tokens": 0}), 400),
        ("/v1/generate", json!({"prompt": "a", "tokens": 1_000_000_000}), 400),
        ("/v1/generate", json!({"prompt": "a", "n_best": 0}), 400),
        ("/v1/generate", json!({"prompt": "a", "n_best": 1_000_000}), 400),
        ("/v1/generate", json!({"prompt": "a", "beam": 1_000_000}), 400),
        ("/v1/generate", json!({"prompt": "a", "top_k": 0}), 400),
        ("/v1/generate", json!({"prompt": "a", "no_repeat_ngram": 0}), 400),
        ("/translate", json!({"q": "一", "source": "zh", "target": "en", "alternatives": 1_000_000}), 400),
    ] {
        let reply = post(&server, route, &body);
        assert_eq!(reply.status, status, "{route}: {}", reply.body);
        assert!(!reply.error().is_empty());
    }
}
