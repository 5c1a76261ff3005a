//! A worker that makes no progress: its clients get errors, and health and metrics report it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use heedful_server::{Limits, Server, ServerOptions};
use serde_json::json;

use crate::client::{Reply, get, metric, post, request, send, until};
use crate::control::{Control, controlled};
use crate::models::options;

/// A short worker timeout for fast tests; all other limits are longer than the test's timeout.
fn short_limits() -> Limits {
    Limits {
        worker_timeout: Duration::from_millis(200),
        timeout: Duration::from_secs(3600),
        ..Limits::default()
    }
}

fn controlled_server(limits: Limits) -> (Server, Arc<Control>) {
    let control = Arc::new(Control::default());
    let options = ServerOptions { limits, ..options(vec![controlled(&control)]) };
    (Server::start(options).expect("a server"), control)
}

fn post_in_background(
    address: SocketAddr,
    path: &str,
    body: &serde_json::Value,
) -> thread::JoinHandle<Reply> {
    let bytes = request("POST", path, "application/json", &body.to_string());
    thread::spawn(move || send(address, bytes.as_bytes()))
}

const STUCK: &str = "the worker of zh-en for short requests has made no progress for";

#[test]
fn clients_of_a_stuck_worker_get_an_error_and_the_server_is_not_alive() {
    let (server, control) = controlled_server(short_limits());
    assert_eq!(
        (get(&server, "/health/live").json(), metric(&server, "stuck_workers")),
        (json!({"status": "ok"}), 0)
    );
    control.hold();
    let request_body = json!({"q": "一辆", "source": "zh", "target": "en"});
    let whole = post_in_background(server.address(), "/translate", &request_body);
    let streamed =
        post_in_background(server.address(), "/v1/translate", &json!({"text": "一套", "stream": true}));
    let whole = whole.join().expect("an answer");
    assert_eq!(whole.status, 503);
    assert!(whole.error().contains(STUCK), "{}", whole.error());
    // A started stream ends with the error; a later request is refused.
    let streamed = streamed.join().expect("an answer");
    let body = match streamed.status {
        200 => streamed.events().pop().filter(|(name, _)| name == "error").expect("an error at its end").1,
        status => {
            assert_eq!(status, 503);
            streamed.json()
        }
    };
    assert!(body["error"].as_str().is_some_and(|error| error.contains(STUCK)), "{body}");

    for path in ["/health", "/health/live", "/health/ready"] {
        let reply = get(&server, path);
        assert_eq!((reply.status, reply.json()["status"].as_str()), (503, Some("stuck")), "{path}");
        assert!(reply.error().contains(STUCK), "{path}: {}", reply.error());
    }
    assert_eq!((metric(&server, "stuck_workers"), metric(&server, "ready")), (1, 0));
    // Other clients do not have to wait.
    let refused = post(&server, "/translate", &request_body);
    assert_eq!((refused.status, metric(&server, "waiting")), (503, 0));
    assert!(refused.error().contains(STUCK), "{}", refused.error());
    assert!(metric(&server, "refused_total") > 0);

    control.release();
    until("it is alive again", || get(&server, "/health/live").status == 200);
    until("it translates again", || post(&server, "/translate", &request_body).status == 200);
    assert_eq!(metric(&server, "stuck_workers"), 0);
}

#[test]
fn a_started_stream_ends_with_an_error() {
    let (server, control) = controlled_server(short_limits());
    control.hold();
    let streamed =
        post_in_background(server.address(), "/v1/translate", &json!({"text": "一套", "stream": true}));
    let events = streamed.join().expect("an answer").events();
    let (name, data) = events.last().expect("an end");
    assert_eq!(name, "error");
    assert!(data["error"].as_str().is_some_and(|error| error.contains(STUCK)), "{data}");
    control.release();
}

#[test]
fn other_lanes_continue_while_one_worker_is_stuck() {
    let (server, control) = controlled_server(short_limits());
    control.hold_longer_than(256);
    let translate_body = |text: &str| json!({"q": text, "source": "zh", "target": "en"});
    let long = post(&server, "/translate", &translate_body(&"狗".repeat(300)));
    assert_eq!(long.status, 503);
    assert!(long.error().contains("zh-en for medium requests"), "{}", long.error());
    until("short ones are translated", || {
        post(&server, "/translate", &translate_body("一只狗")).status == 200
    });
    control.release();
}

#[test]
fn a_worker_that_fails_without_a_request_reports_to_the_next_client() {
    let (server, control) = controlled_server(Limits::default());
    control.fail_at_start();
    // Longer than typed text: its lane starts a search for each request.
    let request_body = json!({"q": "狗".repeat(300), "source": "zh", "target": "en"});
    for _ in 0..2 {
        let reply = post(&server, "/translate", &request_body);
        assert_eq!(reply.status, 500, "{}", reply.body);
        assert!(reply.error().contains("as the test requested"), "{}", reply.error());
    }
    control.release();
    until("it has recovered", || post(&server, "/translate", &request_body).status == 200);
}
