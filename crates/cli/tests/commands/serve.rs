//! `heedful serve` as a process: it prints its address, responds, and stops on a signal.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::process::PATIENCE;
use crate::support::{Bounded, Workplace, send};

/// A connection with a timeout.
fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    stream
}

#[test]
#[cfg_attr(not(unix), ignore = "it sends a signal")]
fn a_run_is_served_under_its_languages_until_sigterm() {
    // Trained for long enough to generate more than the most frequent token.
    let place = Workplace::new(800);
    place.good(&Workplace::training("run", "--steps 60 --lr 3e-3"));
    let complaint = place.bad("serve run --port 0 --shortlist");
    assert!(complaint.contains("run: it has no shortlist: learn one with heedful shortlist"), "{complaint}");
    // So few tokens that the shortlist changes the translation.
    place.good("shortlist run --src valid.zh --tgt valid.en --per-token 1 --frequent 1");
    let mut command = place.command("serve run --port 0 --shortlist");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).running();
    let mut lines = BufReader::new(child.stderr.take().expect("standard error"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a first line");
    // The languages come from the names of the training files.
    assert!(line.contains("run (zh → en)"), "{line}");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split(' ').next()).expect("an address");

    let body = r#"{"q": "一辆汽车", "source": "zh", "target": "en"}"#;
    let head = format!(
        "POST /translate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = connect(address);
    stream.write_all((head + body).as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let translated = place.good("translate run --text 一辆汽车 --shortlist");
    assert_ne!(translated, place.good("translate run --text 一辆汽车"));
    let expected =
        serde_json::json!({ "translatedText": translated.strip_suffix('\n').expect("a line") }).to_string();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(&expected), "{answer}\n{expected}");

    send(&child, 15);
    assert!(child.ended().success());
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("its last words");
    assert!(rest.contains("all accepted requests are answered"), "{rest}");
}

#[test]
#[cfg_attr(not(unix), ignore = "it sends signals")]
fn a_stopping_server_responds_while_it_drains() {
    let place = Workplace::empty();
    std::fs::create_dir(place.path("runs")).expect("room");
    let mut command = place.command("serve --runs runs --port 0 --drain 3600");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).running();
    let mut lines = BufReader::new(child.stderr.take().expect("standard error"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a first line");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split(' ').next()).expect("an address");
    let get = |path: &str| {
        let mut stream = connect(address);
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    assert!(get("/health/ready").starts_with("HTTP/1.1 200"));
    send(&child, 15);
    while !get("/health/ready").starts_with("HTTP/1.1 503") {
        assert!(child.status().is_none(), "it ended");
    }
    assert!(get("/health/ready").contains("draining") && get("/v1/runs").starts_with("HTTP/1.1 200"));
    // A second signal does not wait.
    send(&child, 15);
    assert_eq!(child.ended().code(), Some(143));
}

#[test]
#[cfg_attr(not(unix), ignore = "it sends signals")]
fn a_server_stops_although_a_reload_hangs() {
    let place = Workplace::empty();
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("../heedful/tests/exchange/models/marian-swish");
    place.good(&format!("import {} -o model", given.display()));
    let mut command = place.command("serve model --port 0");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).running();
    let mut lines = BufReader::new(child.stderr.take().expect("standard error"));
    lines.read_line(&mut String::new()).expect("a first line");
    // A FIFO without a writer: reading it blocks.
    let config = place.path("model/config.json");
    std::fs::remove_file(&config).expect("it was there");
    assert!(Command::new("mkfifo").arg(&config).status().expect("mkfifo").success());
    send(&child, 1);
    let (opened, is_open) = mpsc::channel();
    thread::spawn(move || opened.send(OpenOptions::new().write(true).open(config)));
    let _never_written = is_open.recv_timeout(PATIENCE).expect("the reload reads it").expect("it is open");
    send(&child, 15);
    child.ended();
}

#[test]
fn a_run_can_be_watched_while_it_trains() {
    let place = Workplace::new(200);
    let mut command = place.command(&Workplace::training("run", "--steps 1000000 --dashboard=0"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).running();
    let mut lines = BufReader::new(child.stderr.take().expect("standard error"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a first line");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).expect("an address");
    // Its further output is ignored, but must not fill the pipe.
    thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));

    let get = |path: &str| {
        let mut stream = connect(address);
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    };
    assert!(get("/").contains("<title>"));
    assert!(get("/v1/runs").ends_with(r#"["run"]"#));
    for (path, wanted) in [("metrics", "\"valid_loss\""), ("attention", "\"weights\"")] {
        while !get(&format!("/v1/runs/run/{path}")).contains(wanted) {
            assert!(child.status().is_none(), "it ended by itself");
            thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn serving_errors_give_a_reason() {
    let place = Workplace::empty();
    assert!(place.bad("serve").contains("there is nothing to serve"));
    assert!(place.bad("serve nowhere --port 0").contains("nowhere is not a folder"));
    assert!(place.bad("serve --model nowhere").contains("NAME=FOLDER"));
    assert!(place.bad("serve --runs . --port 0 --queue 3").contains("--queue"));
    place.write("keys.json", b"[{\"kay\": 1}]");
    assert!(place.bad("serve --runs . --port 0 --keys keys.json").contains("keys.json"));
}
