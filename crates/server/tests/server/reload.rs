//! Models are replaced at runtime.

use std::fs;
use std::time::Duration;

use heedful::models::EncoderDecoderConfig;
use heedful::models::transformer::TransformerConfig;
use heedful_server::{Limits, ModelSpec, Server, ServerOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Reply, metric, post, until};
use crate::models::{classifier, options, transformer, translator, write};

fn server(more: impl FnOnce(&TempDir, ServerOptions) -> ServerOptions) -> (Server, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    translator(&folder.path().join("zh-en"), 1);
    fs::write(folder.path().join("keys.json"), r#"[{"key": "owner", "admin": true}, {"key": "guest"}]"#)
        .expect("room");
    let models = vec![ModelSpec::named("zh-en", folder.path().join("zh-en"))];
    let options = more(&folder, options(models));
    (Server::start(options).expect("a server"), folder)
}

fn translated(server: &Server) -> Value {
    let body = json!({"q": "一辆汽车", "source": "zh", "target": "en", "api_key": "guest"});
    post(server, "/translate", &body).json()["translatedText"].clone()
}

fn reload(server: &Server, key: &str) -> Reply {
    post(server, "/v1/reload", &json!({"api_key": key}))
}

#[test]
fn a_new_model_replaces_the_old_one_and_a_broken_one_does_not() {
    let (server, folder) =
        server(|folder, options| ServerOptions { keys: Some(folder.path().join("keys.json")), ..options });
    let old = translated(&server);
    translator(&folder.path().join("zh-en"), 2);
    assert_eq!(translated(&server), old, "not before a reload is requested");
    assert_eq!(reload(&server, "guest").status, 403);
    assert_eq!(reload(&server, "owner").json(), json!({"reloaded": ["zh-en"]}));
    let new = translated(&server);
    assert_ne!(new, old);

    let weights = folder.path().join("zh-en/model.safetensors");
    let whole = fs::read(&weights).expect("weights");
    fs::write(&weights, &whole[..whole.len() / 2]).expect("room");
    let broken = reload(&server, "owner");
    assert_eq!(broken.status, 500);
    assert!(broken.error().contains("the old model keeps serving"), "{}", broken.error());
    assert_eq!(translated(&server), new);

    fs::remove_dir_all(folder.path().join("zh-en")).expect("it was there");
    classifier(&folder.path().join("zh-en"));
    assert!(reload(&server, "owner").error().contains("it was a translator and is now a classifier"));
    assert_eq!(translated(&server), new);
    assert_eq!(post(&server, "/v1/reload", &json!({"model": "x", "api_key": "owner"})).status, 404);
}

#[test]
fn a_half_copied_model_is_not_loaded_and_the_old_one_keeps_serving() {
    let (server, folder) =
        server(|folder, options| ServerOptions { keys: Some(folder.path().join("keys.json")), ..options });
    let (served, next) = (folder.path().join("zh-en"), folder.path().join("next"));
    let config = TransformerConfig { d_ff: 96, ..transformer() };
    write(&next, EncoderDecoderConfig::Transformer(config).into(), 2);
    let old = translated(&server);
    let refused = |file: &str| {
        let reply = reload(&server, "owner");
        assert_eq!(reply.status, 500);
        assert!(reply.error().contains(file), "{}", reply.error());
        assert!(reply.error().contains("the old model keeps serving"), "{}", reply.error());
        assert_eq!(translated(&server), old);
    };
    fs::copy(next.join("config.json"), served.join("config.json")).expect("room");
    refused("config.json is not the file that");
    let weights = fs::read(next.join("model.safetensors")).expect("weights");
    for length in [100, weights.len() / 2, weights.len() - 1] {
        fs::write(served.join("model.safetensors"), &weights[..length]).expect("room");
        refused("model.safetensors");
    }
    fs::write(served.join("model.safetensors"), weights).expect("room");
    assert_eq!(reload(&server, "owner").status, 200);
    assert_ne!(translated(&server), old);
}

#[test]
fn reloading_over_http_needs_keys() {
    let (server, _folder) = server(|_, options| options);
    let refused = reload(&server, "owner");
    assert_eq!(refused.status, 403);
    assert!(refused.error().contains("SIGHUP"));
    assert!(server.reload().is_empty(), "the program itself may reload");
}

#[test]
fn weights_that_change_on_disk_are_reloaded() {
    let watch = Some(Duration::from_millis(20));
    let (server, folder) = server(|_, options| ServerOptions { watch, ..options });
    let old = translated(&server);
    translator(&folder.path().join("zh-en"), 2);
    until("the new model", || translated(&server) != old);
    assert!(metric(&server, "reloads_total") > 0);
}

#[test]
fn requests_that_started_with_the_old_model_end_with_it() {
    let control = std::sync::Arc::new(crate::control::Control::default());
    let server = Server::start(options(vec![crate::control::controlled(&control)])).expect("a server");
    control.hold();
    let address = server.address();
    let body = json!({"q": "一辆汽车", "source": "zh", "target": "en"}).to_string();
    let client = std::thread::spawn(move || {
        let bytes = crate::client::request("POST", "/translate", "application/json", &body);
        crate::client::send(address, bytes.as_bytes()).status
    });
    until("it is in flight", || metric(&server, "in_flight") == 1);
    assert!(server.reload().is_empty());
    control.release();
    assert_eq!(crate::client::joined("an answer", client), 200);
}

/// A server with a controlled model and this grace period for replaced versions.
fn keeping(grace: Duration) -> (Server, std::sync::Arc<crate::control::Control>) {
    let control = std::sync::Arc::new(crate::control::Control::default());
    let limits = Limits { grace, worker_timeout: Duration::from_millis(200), ..Limits::default() };
    let options = ServerOptions { limits, ..options(vec![crate::control::controlled(&control)]) };
    (Server::start(options).expect("a server"), control)
}

#[test]
fn at_most_two_versions_of_a_model_are_in_memory() {
    let (server, control) = keeping(Duration::from_millis(200));
    control.hold();
    let address = server.address();
    let body = json!({"q": "一辆汽车", "source": "zh", "target": "en"}).to_string();
    let bytes = crate::client::request("POST", "/translate", "application/json", &body);
    let client = std::thread::spawn(move || crate::client::send(address, bytes.as_bytes()));
    until("it is in flight", || metric(&server, "in_flight") == 1);
    assert!(server.reload().is_empty());
    assert_eq!(metric(&server, "versions"), 2);
    // Its client does not wait forever, and a third version is not loaded before the first is dropped.
    assert_eq!(client.join().expect("an answer").status, 503);
    for _ in 0..2 {
        let failures = server.reload();
        let message = failures.first().map(ToString::to_string).expect("there is no room for another one");
        assert!(message.contains("still in memory"), "{message}");
    }
    assert_eq!((metric(&server, "versions"), metric(&server, "reloads_total")), (2, 1));
    control.release();
    until("the first version is gone", || metric(&server, "versions") == 1);
    for _ in 0..10 {
        // On a busy machine, threads may need more than 400 ms to end.
        until("the next version", || server.reload().is_empty());
        assert!(metric(&server, "versions") <= 2);
    }
    until("the last one is alone", || metric(&server, "versions") == 1);
}

#[test]
fn requests_continue_with_a_replaced_model_for_the_grace_period_only() {
    let control = std::sync::Arc::new(crate::control::Control::default());
    let limits = Limits { grace: Duration::from_millis(100), ..Limits::default() };
    let server = ServerOptions { limits, ..options(vec![crate::control::controlled(&control)]) };
    let server = Server::start(server).expect("a server");
    control.hold();
    let address = server.address();
    let ask = |path: &str, body: Value| {
        let bytes = crate::client::request("POST", path, "application/json", &body.to_string());
        std::thread::spawn(move || crate::client::send(address, bytes.as_bytes()))
    };
    let whole = ask("/translate", json!({"q": "一辆汽车", "source": "zh", "target": "en"}));
    let streamed = ask("/v1/translate", json!({"text": "一辆汽车", "stream": true}));
    until("both are there", || metric(&server, "in_flight") + metric(&server, "waiting") == 2);
    assert!(server.reload().is_empty());
    let whole = whole.join().expect("an answer");
    assert_eq!((whole.status, whole.header("retry-after")), (503, Some("1")));
    assert!(whole.error().contains("zh-en was replaced by a newer version"), "{}", whole.error());
    let (name, data) = streamed.join().expect("an answer").events().pop().expect("an end");
    assert!(
        name == "error" && data["error"].as_str().is_some_and(|error| error.contains("replaced")),
        "{data}"
    );
    control.release();
    until("the old version is gone", || metric(&server, "versions") == 1);
}
