//! Access control: keys, host names, origins, addresses.

use std::fs;
use std::io::Write;

use heedful_server::{Limits, ModelSpec, Server, ServerOptions};
use serde_json::json;
use tempfile::TempDir;

use crate::client::{Reply, connect, get, metric, post, read, send, until, value};
use crate::models::{options, serving, translator};

/// A server with a key for guests and one for its owner, and a run.
fn with_keys(options: ServerOptions) -> (Server, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    translator(&folder.path().join("zh-en"), 4);
    let run = folder.path().join("runs/first");
    fs::create_dir_all(&run).expect("a folder");
    fs::write(run.join("metrics.jsonl"), "{\"step\":1,\"loss\":2.5}\n").expect("room");
    fs::write(run.join("attention.jsonl"), "").expect("room");
    fs::write(run.join("report.html"), "<p>curves</p>").expect("room");
    let keys = folder.path().join("keys.json");
    fs::write(&keys, r#"[{"key": "guest"}, {"key": "owner", "admin": true}]"#).expect("room");
    let server = Server::start(ServerOptions {
        models: vec![ModelSpec::named("zh-en", folder.path().join("zh-en"))],
        keys: Some(keys),
        runs: Some(folder.path().join("runs")),
        ..options
    });
    (server.expect("a server"), folder)
}

/// Sends a request with a body and more header lines.
fn ask(server: &Server, line: &str, headers: &str, body: &str) -> Reply {
    let length = body.len();
    let bytes = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    send(server.address(), bytes.as_bytes())
}

#[test]
fn every_route_with_data_or_computation_needs_a_key() {
    let (server, _folder) = with_keys(options(Vec::new()));
    let text = r#"{"text": "一辆"}"#;
    let request_body = r#"{"q": "一辆", "source": "zh", "target": "en"}"#;
    // The status for a guest, and for the owner.
    for (line, body, of_guest, of_owner) in [
        ("GET /v1/models", "", 200, 200),
        ("GET /v1/runs", "", 200, 200),
        ("GET /v1/runs/first/metrics", "", 200, 200),
        ("GET /v1/runs/first/attention", "", 200, 200),
        ("GET /v1/runs/first/report", "", 200, 200),
        ("GET /v1/runs/first/plan", "", 200, 200),
        ("GET /v1/runs/first/heads", "", 404, 404),
        ("GET /metrics", "", 200, 200),
        ("POST /v1/translate", text, 200, 200),
        ("POST /v1/classify", text, 404, 404),
        ("POST /v1/generate", "{}", 404, 404),
        ("POST /translate", request_body, 200, 200),
        ("POST /detect", r#"{"q": "一辆"}"#, 200, 200),
        ("POST /v1/reload", "{}", 403, 200),
    ] {
        let without = ask(&server, line, "", body);
        assert_eq!(without.status, 403, "{line}: {}", without.body);
        assert!(without.error().contains("this server needs an API key"), "{line}: {}", without.error());
        for (header, expected) in [
            ("Authorization: Bearer guest\r\n", of_guest),
            ("authorization: bearer guest\r\n", of_guest),
            ("Authorization: BEARER owner\r\n", of_owner),
            ("Authorization: Basic owner\r\n", 403),
            ("Authorization: Bearer own\r\n", 403),
        ] {
            let reply = ask(&server, line, header, body);
            assert_eq!(reply.status, expected, "{line}, {header}: {}", reply.body);
        }
        let path = line.split_once(' ').map(|(method, path)| format!("{method} {path}?api_key=owner"));
        assert_eq!(ask(&server, &path.expect("a line"), "", body).status, of_owner, "{line}");
    }
    // Public: the page, the routes that it needs to ask for a key, and the public routes of LibreTranslate.
    for path in ["/", "/app.js", "/health", "/openapi.json", "/languages", "/frontend/settings"] {
        assert_eq!(get(&server, path).status, 200, "{path}");
    }
    assert_eq!(get(&server, "/frontend/settings").json()["keyRequired"], true);
}

#[test]
fn guessing_keys_locks_an_address_out_and_known_keys_pass() {
    let (server, _folder) = with_keys(options(Vec::new()));
    for number in 0..20 {
        let reply = ask(&server, "GET /v1/models", &format!("Authorization: Bearer {number}\r\n"), "");
        assert_eq!((reply.status, reply.error().as_str()), (403, "this API key is not known here"));
    }
    let reply = ask(&server, "GET /v1/models", "Authorization: Bearer 20\r\n", "");
    assert_eq!(reply.status, 429);
    assert!(
        reply.error().starts_with("too many unknown API keys came from this address"),
        "{}",
        reply.error()
    );
    let seconds = reply.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
    assert!(seconds.is_some_and(|seconds| seconds <= 61));
    for key in ["guest", "owner"] {
        let reply = ask(&server, "GET /v1/models", &format!("Authorization: Bearer {key}\r\n"), "");
        assert_eq!(reply.status, 200, "{key}: {}", reply.body);
    }
    assert_eq!(get(&server, "/health").status, 200);
}

#[test]
fn metrics_may_have_a_separate_address() {
    let metrics_address = Some("127.0.0.1:0".parse().expect("an address"));
    let (server, _folder) = with_keys(ServerOptions { metrics_address, ..options(Vec::new()) });
    let address = server.metrics_address().expect("an address");
    let at = |path: &str, host: &str| {
        send(address, format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes())
    };
    assert_eq!(get(&server, "/metrics").status, 403);
    let page = at("/metrics", "localhost");
    assert_eq!((page.status, value(&page.body, "reloads_total")), (200, 0));
    for (path, host, status) in [
        ("/health", "localhost", 200),
        ("/v1/models", "localhost", 404),
        ("/", "localhost", 404),
        ("/metrics", "evil.example", 403),
    ] {
        assert_eq!(at(path, host).status, status, "{path} {host}");
    }
    let taken = ServerOptions { metrics_address: Some(address), ..options(Vec::new()) };
    let error = Server::start(taken).err().expect("it is taken").to_string();
    assert!(error.contains("for metrics") && error.contains("--metrics-listen"), "{error}");
}

#[test]
fn foreign_pages_are_refused() {
    let (server, _folder) = serving();
    let port = server.address().port();
    let own = format!("http://127.0.0.1:{port}");
    let body = r#"{"q": "一辆", "source": "zh", "target": "en"}"#;
    for (host, origin, status, part) in [
        (format!("127.0.0.1:{port}"), Some(own.clone()), 200, ""),
        (format!("localhost:{port}"), None, 200, ""),
        ("evil.example".to_owned(), None, 403, "does not answer to the name `evil.example`"),
        ("evil.example".to_owned(), Some("http://evil.example".to_owned()), 403, "--allow-host evil.example"),
        (
            format!("127.0.0.1:{port}"),
            Some("https://evil.example".to_owned()),
            403,
            "pages of `https://evil.example`",
        ),
        (format!("127.0.0.1:{port}"), Some("null".to_owned()), 403, "pages of `null`"),
    ] {
        let origin = origin.map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
        // Requests that a form or a page may send without a preflight.
        let bytes = format!(
            "POST /translate HTTP/1.1\r\nHost: {host}\r\n{origin}Content-Type: text/plain\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        let reply = send(server.address(), bytes.as_bytes());
        assert_eq!(reply.status, status, "{host} {origin}: {}", reply.body);
        assert!(status == 200 || reply.error().contains(part), "{host} {origin}: {}", reply.body);
    }
    assert_eq!(metric(&server, "sentences_total"), 2);
}

#[test]
fn invalid_options_are_refused() {
    for (options, part) in [
        (
            ServerOptions { allow_hosts: vec!["http://x".into()], ..options(Vec::new()) },
            "--allow-host \"http://x\" is not a host",
        ),
        (ServerOptions { allow_hosts: vec![String::new()], ..options(Vec::new()) }, "is not a host"),
        (ServerOptions { allow_origin: Some("a\nb".into()), ..options(Vec::new()) }, "is not an origin"),
        (
            ServerOptions {
                limits: Limits { connections_per_address: 0, ..Limits::default() },
                ..options(Vec::new())
            },
            "no request could be served",
        ),
    ] {
        let error = Server::start(options).err().expect("odd options").to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn one_address_cannot_take_all_connections() {
    let limits = Limits { connections_per_address: 3, ..Limits::default() };
    let server = Server::start(ServerOptions { limits, ..options(Vec::new()) }).expect("a server");
    let mut open: Vec<_> = (0..3).map(|_| connect(server.address())).collect();
    // All three are counted as soon as one more is refused.
    let mut refused = connect(server.address());
    let reply = read(&mut refused);
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("1")));
    assert!(reply.error().starts_with("this address has 3 open connections already"), "{}", reply.error());
    open[0]
        .write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .expect("a request");
    assert_eq!(read(&mut open[0]).status, 200);
    until("there is room again", || {
        let mut stream = connect(server.address());
        let _ = stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).is_ok() && answer.starts_with("HTTP/1.1 200")
    });
    let reply = post(&server, "/detect", &json!({"q": "一辆"}));
    assert_eq!(reply.status, 200, "{}", reply.body);
}
