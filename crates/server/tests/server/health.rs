//! Liveness and readiness: while models are loaded, while serving, and before the end.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use heedful_server::{Engine, ModelSpec, Origin, Server, ServerOptions};
use serde_json::json;

use crate::client::{
    Reply, TIMEOUT, attempt, connect, get, joined, metric, post, request, send, until, value,
};
use crate::control::{Control, controlled};
use crate::models::{options, serving};

/// A model whose loading waits for the test, which decides whether it succeeds.
fn waiting_for(decision: Receiver<bool>) -> ModelSpec {
    let spec = controlled(&Arc::new(Control::default()));
    let Origin::Factory(make) = spec.origin.clone() else { panic!("a controlled model is made") };
    let decision = Mutex::new(decision);
    let wait = move || -> Result<Engine, String> {
        match decision.lock().expect("a lock").recv_timeout(TIMEOUT) {
            Ok(true) => make(),
            _ => Err("as the test requested".to_owned()),
        }
    };
    ModelSpec { origin: Origin::Factory(Arc::new(wait)), ..spec }
}

fn asked(address: SocketAddr, path: &str) -> Reply {
    send(address, request("GET", path, "text/plain", "").as_bytes())
}

fn starting() -> (heedful_server::StartingServer, Sender<bool>) {
    let (decide, decision) = channel();
    let metrics_address = Some("127.0.0.1:0".parse().expect("an address"));
    let options = ServerOptions { metrics_address, ..options(vec![waiting_for(decision)]) };
    (Server::listen(options).expect("it listens"), decide)
}

#[test]
fn a_server_is_alive_and_not_ready_until_its_models_are_loaded() {
    let (starting, decide) = starting();
    let address = starting.address();
    let loading = thread::spawn(move || starting.load());
    for path in ["/health", "/health/live"] {
        assert_eq!(asked(address, path).status, 200, "{path}");
    }
    let ready = asked(address, "/health/ready");
    assert_eq!((ready.status, ready.json()["status"].as_str()), (503, Some("loading")));
    assert_eq!(
        (ready.error(), ready.header("retry-after")),
        ("the models are being loaded".into(), Some("1"))
    );
    for path in ["/", "/v1/models", "/openapi.json", "/metrics", "/nowhere"] {
        let reply = asked(address, path);
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{path}");
        assert!(reply.error().contains("try again"), "{}", reply.body);
    }
    let body = json!({"q": "一辆", "source": "zh", "target": "en"}).to_string();
    assert_eq!(
        send(address, request("POST", "/translate", "application/json", &body).as_bytes()).status,
        503
    );
    // Unknown hosts are refused from the start.
    let stranger = "GET /health/ready HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n";
    assert_eq!(send(address, stranger.as_bytes()).status, 403);

    decide.send(true).expect("it waits");
    let server = joined("a model", loading).expect("a model");
    let ready = get(&server, "/health/ready");
    assert_eq!((ready.status, ready.json()), (200, json!({"status": "ready"})));
    assert_eq!((get(&server, "/").status, metric(&server, "ready")), (200, 1));
    assert_eq!(
        post(&server, "/translate", &json!({"q": "一辆", "source": "zh", "target": "en"})).status,
        200
    );
}

#[test]
fn a_connection_opened_while_loading_is_served_afterwards() {
    use std::io::{BufRead, BufReader, Write};
    let (starting, decide) = starting();
    let mut stream = connect(starting.address());
    let ask = |stream: &mut std::net::TcpStream| {
        stream.write_all(b"GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
        let mut lines = BufReader::new(stream.try_clone().expect("a second end"));
        let mut status = String::new();
        lines.read_line(&mut status).expect("an answer");
        let mut line = String::new();
        let mut length = 0;
        while lines.read_line(&mut line).is_ok() && line.trim() != "" {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a number");
            }
            line.clear();
        }
        std::io::Read::read_exact(&mut lines, &mut vec![0; length]).expect("the body");
        status
    };
    assert!(ask(&mut stream).contains("503"));
    decide.send(true).expect("it waits");
    let _server = starting.load().expect("a model");
    assert!(ask(&mut stream).contains("200"));
}

#[test]
fn a_model_that_cannot_be_loaded_ends_the_server_with_the_reason() {
    let (starting, decide) = starting();
    let address = starting.address();
    assert_eq!(asked(address, "/health/live").status, 200);
    decide.send(false).expect("it waits");
    let error = starting.load().err().expect("no model").to_string();
    assert!(error.contains("zh-en: as the test requested"), "{error}");
    until("the port is closed", || {
        std::net::TcpStream::connect(address).is_err()
            || attempt(address, request("GET", "/health", "text/plain", "").as_bytes()).is_none()
    });
}

#[test]
fn a_draining_server_answers_and_is_not_ready() {
    let (server, _folder) = serving();
    let translate = || post(&server, "/translate", &json!({"q": "一辆", "source": "zh", "target": "en"}));
    assert_eq!((translate().status, get(&server, "/health/ready").status), (200, 200));
    server.drain();
    let ready = get(&server, "/health/ready");
    assert_eq!((ready.status, ready.json()["status"].as_str()), (503, Some("draining")));
    assert!(ready.error().contains("use another one"));
    assert_eq!((get(&server, "/health").status, get(&server, "/health/live").status), (200, 200));
    assert_eq!(translate().status, 200);
    assert_eq!(metric(&server, "ready"), 0);
    // Kept connections are closed, so that clients open the next one on another server.
    let mut stream = connect(server.address());
    std::io::Write::write_all(&mut stream, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("it reads");
    let reply = crate::client::read(&mut stream);
    assert_eq!((reply.status, reply.header("connection")), (200, Some("close")));
    server.stop();
}

#[test]
fn queue_depth_and_utilization_are_measured_from_the_start() {
    let (decide, decision) = channel();
    let address = Some("127.0.0.1:0".parse().expect("an address"));
    let control = Arc::new(Control::default());
    let blocked = ModelSpec { name: "other".into(), ..waiting_for(decision) };
    let options = ServerOptions { metrics_address: address, ..options(vec![controlled(&control), blocked]) };
    let starting = Server::listen(options).expect("it listens");
    let loading = thread::spawn(move || starting.load());
    decide.send(true).expect("it waits");
    let server = joined("models", loading).expect("models");
    let metrics = server.metrics_address().expect("an address");
    assert_eq!((asked(metrics, "/health/ready").status, asked(metrics, "/health/live").status), (200, 200));
    assert_eq!(value(&asked(metrics, "/metrics").body, "waiting_tokens"), 0);

    control.hold();
    let address = server.address();
    let body = json!({"text": "一辆", "model": "zh-en"}).to_string();
    let ask =
        move || send(address, request("POST", "/v1/translate", "application/json", &body).as_bytes()).status;
    let first = thread::spawn(ask.clone());
    until("the first is in flight", || metric(&server, "in_flight") == 1);
    let others: Vec<_> = (0..3).map(|_| thread::spawn(ask.clone())).collect();
    until("three wait", || metric(&server, "waiting") == 3);
    assert!(metric(&server, "waiting_tokens") >= 6, "three sentences of two characters");
    control.release();
    for client in others.into_iter().chain([first]) {
        assert_eq!(joined("an answer", client), 200);
    }
    assert_eq!((metric(&server, "waiting"), metric(&server, "waiting_tokens")), (0, 0));
    let page = get(&server, "/metrics").body;
    let number = |line: &str| -> f64 {
        let line = page.lines().find(|found| found.starts_with(line)).unwrap_or_else(|| panic!("{page}"));
        line.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a number")
    };
    assert!(number("heedful_busy_seconds_total{model=\"zh-en\"}") > 0.0);
    let share = number("heedful_utilization{model=\"zh-en\"}");
    assert!(share > 0.0 && share <= 1.0, "{share}");
    assert_eq!(number("heedful_utilization{model=\"other\"}"), 0.0);
}
