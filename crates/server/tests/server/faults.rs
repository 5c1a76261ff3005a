//! Malicious, slow, disconnected or too many clients; a failing model; a shutdown during requests.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use heedful_server::{Limits, Server, ServerOptions};
use serde_json::{Value, json};

use crate::client::{
    Reply, TIMEOUT, attempt, connect, get, joined, metric, post, read, request, send, until, value,
};
use crate::control::{Control, controlled};
use crate::models::{options, serving};

fn translate_body(text: &str) -> Value {
    json!({"q": text, "source": "zh", "target": "en"})
}

fn post_in_background(address: SocketAddr, text: &str) -> thread::JoinHandle<Reply> {
    let bytes = request("POST", "/translate", "application/json", &translate_body(text).to_string());
    thread::spawn(move || send(address, bytes.as_bytes()))
}

fn controlled_server(limits: Limits) -> (Server, Arc<Control>) {
    let control = Arc::new(Control::default());
    let options = ServerOptions { limits, ..options(vec![controlled(&control)]) };
    (Server::start(options).expect("a server"), control)
}

#[test]
fn short_texts_are_answered_while_a_long_one_is_encoded() {
    let (server, control) = controlled_server(Limits::default());
    let alone = post(&server, "/translate", &translate_body("一只狗")).json();
    control.hold_longer_than(256);
    let long = post_in_background(server.address(), &"狗".repeat(300));
    until("the long one is in flight", || metric(&server, "in_flight") == 1);
    // Several, so that some arrive after the long one.
    for _ in 0..3 {
        assert_eq!(post(&server, "/translate", &translate_body("一只狗")).json(), alone);
    }
    assert!(!long.is_finished());
    control.release();
    let long = joined("an answer", long);
    assert_eq!(long.status, 200, "{}", long.body);
}

#[test]
fn a_single_sentence_is_answered_before_a_book_that_came_first() {
    let (server, control) = controlled_server(Limits::default());
    control.hold_in_steps_of_more_than(8);
    // Sixty sentences, none of them long.
    let book = post_in_background(server.address(), &"一只狗在公园里跑。\n".repeat(60));
    until("the book is in flight", || metric(&server, "in_flight") > 1);
    assert_eq!(post(&server, "/translate", &translate_body("一只狗")).status, 200);
    assert!(!book.is_finished());
    control.release();
    let book = joined("an answer", book);
    assert_eq!(book.status, 200, "{}", book.body);
    assert_eq!(book.json()["translatedText"].as_str().map(|text| text.lines().count()), Some(60));
}

#[test]
fn malformed_requests_get_an_error_and_affect_no_other_request() {
    let (server, _folder) = serving();
    let address = server.address();
    for body in ["{", "[]", "nonsense", "{\"q\": \"\\ud800\"}", "{\"q\":"] {
        let reply = send(address, request("POST", "/translate", "application/json", body).as_bytes());
        assert_eq!(reply.status, 400, "{body}: {}", reply.body);
        assert!(!reply.error().is_empty());
    }
    let nested = "[".repeat(100_000);
    assert_eq!(
        send(address, request("POST", "/v1/translate", "application/json", &nested).as_bytes()).status,
        400
    );
    let form = send(address, request("POST", "/translate", "multipart/form-data", "x").as_bytes());
    assert_eq!(form.status, 415);
    assert_eq!(get(&server, "/translate").status, 405);
    assert_eq!(send(address, b"GARBAGE\r\n\r\n").status, 400);
    let long = format!("GET /health HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(1 << 20));
    let mut stream = connect(address);
    let _ = stream.write_all(long.as_bytes());
    let _ = stream.read(&mut [0; 64]);
    assert_eq!(get(&server, "/health").status, 200);
}

#[test]
fn huge_bodies_are_refused_before_they_are_read() {
    let (server, _folder) = serving();
    let head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                Content-Length: 99999999999\r\nConnection: close\r\n\r\n";
    let mut stream = connect(server.address());
    stream.write_all(head.as_bytes()).expect("the head");
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).expect("an answer, though the body never came");
    assert_eq!(&answer, b"HTTP/1.1 413");
    let text = translate_body(&"x".repeat(3 << 20)).to_string();
    let mut stream = connect(server.address());
    let _ = stream.write_all(request("POST", "/translate", "application/json", &text).as_bytes());
    assert_eq!(get(&server, "/health").status, 200);
}

#[test]
fn path_traversal_finds_nothing() {
    let (server, _folder) = serving();
    for path in [
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "/..%2fCargo.toml",
        "//etc/passwd",
        "/index.html/..",
        "/web/index.html",
        "/%00",
        "/index.html%00.js",
        "/.",
    ] {
        assert_eq!(get(&server, path).status, 404, "{path}");
    }
    let page = get(&server, "/");
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe-inline"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn script_in_a_text_is_data_everywhere() {
    let (server, _folder) = serving();
    let evil = "<script>alert(1)</script>";
    let reply = post(&server, "/translate", &translate_body(evil));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    let explained = post(&server, "/v1/translate", &json!({"text": evil})).json();
    assert_eq!(explained["results"][0]["sentences"][0]["explanation"]["source"]["text"], evil);
    let missing = get(&server, "/%3Cscript%3E");
    assert_eq!(missing.header("content-type"), Some("application/json"));
    assert!(!missing.body.contains("<script>"));
}

/// Short limits, so that tests are fast. On a slow machine, other clients may be disconnected too: attempts
/// may fail.
fn short_limits() -> Limits {
    Limits { client_timeout: Duration::from_millis(300), ..Limits::default() }
}

#[test]
fn slow_senders_get_an_error_or_are_disconnected() {
    let (server, _control) = controlled_server(short_limits());
    let address = server.address();
    // A head that never ends: the connection ends in some way.
    let mut head = connect(address);
    head.write_all(b"POST /translate HTTP/1.1\r\nHost: localhost\r\n").expect("a beginning");
    let _ = head.read_to_end(&mut Vec::new());
    // A body that never ends.
    let bytes =
        "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\nConnection: close\r\n\r\n{";
    until("it gets an error", || {
        attempt(address, bytes.as_bytes()).is_some_and(|reply| {
            assert_eq!(reply.status, 408);
            reply.error().contains("did not arrive within")
        })
    });
    let health = request("GET", "/health", "text/plain", "");
    until("others are served", || {
        attempt(address, health.as_bytes()).is_some_and(|reply| reply.status == 200)
    });
}

#[test]
fn clients_that_never_read_are_disconnected() {
    let (server, _control) = controlled_server(short_limits());
    let address = server.address();
    let mut stream = connect(address);
    // Far more responses than fit into the socket buffers; none is read.
    let one = "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.set_write_timeout(Some(TIMEOUT)).expect("a time limit");
    let _ = stream.write_all(one.repeat(4000).as_bytes());
    let metrics = request("GET", "/metrics", "text/plain", "");
    // The connection of this request is one of the open ones.
    until("the connection is closed", || {
        attempt(address, metrics.as_bytes()).is_some_and(|reply| value(&reply.body, "connections") == 1)
    });
}

#[test]
fn a_full_queue_answers_503_and_finishes_accepted_requests() {
    let limits = Limits { queue: 3, sentences: 3, ..Limits::default() };
    let (server, control) = controlled_server(limits);
    control.hold();
    // The first is in flight; the search admits more, so it must be full before the queue fills.
    let first = post_in_background(server.address(), "一辆汽车");
    until("the first is in flight", || metric(&server, "in_flight") == 1);
    let waiting: Vec<_> = (0..3).map(|_| post_in_background(server.address(), "一辆")).collect();
    until("three wait", || metric(&server, "waiting") == 3);
    let refused = post(&server, "/translate", &translate_body("一辆"));
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert!(refused.error().contains("try again"));
    assert_eq!(metric(&server, "refused_total"), 1);
    control.release();
    assert_eq!(joined("an answer", first).status, 200);
    assert!(waiting.into_iter().all(|asked| joined("an answer", asked).status == 200));
}

#[test]
fn the_sentences_of_a_disconnected_client_are_cancelled() {
    let (server, control) = controlled_server(Limits::default());
    control.hold();
    let mut gone = connect(server.address());
    let body = translate_body(&"一辆汽车。".repeat(500)).to_string();
    gone.write_all(request("POST", "/translate", "application/json", &body).as_bytes()).expect("a request");
    until("it is in flight", || metric(&server, "in_flight") > 0);
    drop(gone);
    until("it is given up", || metric(&server, "connections") == 1);
    let before = control.steps();
    control.release();
    let reply = post(&server, "/translate", &translate_body("一辆"));
    assert_eq!(reply.status, 200);
    until("nothing is left", || metric(&server, "in_flight") == 0 && metric(&server, "waiting") == 0);
    assert!(metric(&server, "cancelled_total") > 0);
    // 500 sentences, which do not fit into one batch, would have taken far more steps.
    assert!(control.steps() - before <= 2 * 13 + 2, "{} steps", control.steps() - before);
}

#[test]
fn a_half_closed_connection_counts_as_disconnected_and_is_cleaned_up() {
    let (server, control) = controlled_server(Limits::default());
    control.hold();
    let mut half = connect(server.address());
    half.write_all(
        request("POST", "/translate", "application/json", &translate_body("一辆").to_string()).as_bytes(),
    )
    .expect("a request");
    until("it is in flight", || metric(&server, "in_flight") == 1);
    half.shutdown(Shutdown::Write).expect("half of it");
    until("the connection is closed", || metric(&server, "connections") == 1);
    control.release();
    until("nothing is left", || metric(&server, "in_flight") == 0);
    assert_eq!(post(&server, "/translate", &translate_body("一辆")).status, 200);
}

#[test]
fn a_panic_in_the_worker_is_one_500_and_the_server_goes_on() {
    let (server, control) = controlled_server(Limits::default());
    let good = post(&server, "/translate", &translate_body("一辆汽车"));
    control.panic_once();
    let broken = post(&server, "/translate", &translate_body("一辆汽车"));
    assert_eq!(broken.status, 500);
    assert!(broken.error().contains("as the test requested"), "{}", broken.error());
    assert_eq!(post(&server, "/translate", &translate_body("一辆汽车")).json(), good.json());
    control.panic_once();
    let events = post(&server, "/v1/translate", &json!({"text": "一辆", "stream": true})).events();
    assert_eq!(events.last().expect("an end").0, "error");
    assert_eq!(metric(&server, "panics_total"), 2);
}

#[test]
fn a_panic_while_explaining_a_sentence_affects_no_other() {
    let (server, control) = controlled_server(Limits::default());
    let address = server.address();
    control.hold();
    let explained = json!({"text": "一辆", "attention": "rows"}).to_string();
    let explained = request("POST", "/v1/translate", "application/json", &explained);
    let explained = thread::spawn(move || send(address, explained.as_bytes()));
    // Much longer, so it is still in flight when the other one is explained.
    let other = post_in_background(address, &"一辆汽车".repeat(10));
    until("both are there", || metric(&server, "in_flight") + metric(&server, "waiting") == 2);
    // Otherwise the start of a search would panic instead of the explanation.
    until("the search has begun", || control.has_reached_a_step());
    control.panic_at_start();
    control.release();
    let explained = joined("an answer", explained);
    assert_eq!(explained.status, 500);
    assert!(explained.error().contains("as the test requested"), "{}", explained.error());
    assert_eq!(joined("an answer", other).status, 200);
    assert_eq!(metric(&server, "panics_total"), 1);
}

#[test]
fn requests_beyond_the_timeout_get_504() {
    let limits = Limits { timeout: Duration::from_millis(200), ..Limits::default() };
    let (server, control) = controlled_server(limits);
    control.hold();
    let late = post(&server, "/translate", &translate_body("一辆"));
    assert_eq!(late.status, 504);
    control.release();
    until("it is given up", || metric(&server, "in_flight") == 0);
}

#[test]
fn a_shutdown_finishes_accepted_requests() {
    let (server, control) = controlled_server(Limits::default());
    control.hold();
    let address = server.address();
    let asked: Vec<_> = (0..3).map(|_| post_in_background(address, "一辆汽车。一套房子。")).collect();
    until("all are accepted", || metric(&server, "in_flight") + metric(&server, "waiting") == 6);
    let stopping = thread::spawn(move || server.stop());
    // It refuses connections before its work is done.
    until("no more connections", || std::net::TcpStream::connect(address).is_err());
    control.release();
    assert!(asked.into_iter().all(|asked| joined("an answer", asked).status == 200));
    joined("an end of the server", stopping);
}

#[test]
fn a_thousand_connections_are_served() {
    // However long it takes until all are connected.
    let (server, _control) = controlled_server(Limits { client_timeout: 10 * TIMEOUT, ..Limits::default() });
    let streams: Vec<_> = (0..1000).map(|_| connect(server.address())).collect();
    until("all are there", || metric(&server, "connections") > 1000);
    let expected = post(&server, "/translate", &translate_body("一辆汽车")).body;
    let bytes = request("POST", "/translate", "application/json", &translate_body("一辆汽车").to_string());
    let mut streams: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            stream.write_all(bytes.as_bytes()).expect("the server reads");
            stream
        })
        .collect();
    for stream in &mut streams {
        let reply = read(stream);
        assert_eq!((reply.status, &reply.body), (200, &expected));
    }
}

#[test]
fn a_text_gets_the_same_response_alone_and_under_load() {
    let (server, _folder) = serving();
    let texts: Vec<String> = (0..24).map(|i| format!("一辆汽车{}", "一套房子".repeat(i % 7))).collect();
    let alone: Vec<String> =
        texts.iter().map(|text| post(&server, "/translate", &translate_body(text)).body).collect();
    let address = server.address();
    let together: Vec<_> = texts.iter().map(|text| post_in_background(address, text)).collect();
    let explained = post(&server, "/v1/translate", &json!({"text": texts, "beam": 2, "n_best": 2}));
    assert_eq!(explained.status, 200);
    for (alone, together) in alone.iter().zip(together) {
        assert_eq!(&joined("an answer", together).body, alone);
    }
}
