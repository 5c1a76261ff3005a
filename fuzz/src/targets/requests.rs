//! Requests to a server with small models: bodies of every kind for every route, and bytes that are not HTTP.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use heedful::decode::{MaxLength, SearchOptions};
use heedful_server::{ModelSpec, Server, ServerOptions};

use super::small_model::{classifier, language, translator};
use super::{Opened, Target, Verdict, target};

const WORDS: &[&str] = &[
    "null", "true", "[", "]", "{", "}", "\"\"", "\"\":", "\\ud800", "&", "=", "%", "%00", "+", "q=", "--X",
    "\r\n", "\r\n\r\n", "<b>", "auto", "1e309", "16", "\0",
];

pub(super) fn targets() -> Vec<Target> {
    vec![target("requests", requests, WORDS, 200), target("http", http, WORDS, 100)]
}

fn serve(folder: &Path) -> Server {
    let mut models = Vec::new();
    translator(&folder.join("en-de"));
    classifier(&folder.join("labels"));
    language(&folder.join("text"));
    for name in ["en-de", "labels", "text"] {
        models.push(ModelSpec::named(name, folder.join(name)));
    }
    let run = folder.join("run");
    fs::create_dir_all(&run).expect("a folder");
    fs::write(run.join("metrics.jsonl"), "{\"step\":1,\"seconds\":1.0,\"loss\":2.0}\n").expect("disk space");
    let options = ServerOptions {
        address: "127.0.0.1:0".parse().expect("an address"),
        models,
        run: Some(("run".to_owned(), run)),
        search: SearchOptions {
            max_length: MaxLength::Absolute(6),
            compute: Some(heedful::tensor::Precision::F32),
            ..SearchOptions::default()
        },
        batch_wait: Duration::ZERO,
        ..ServerOptions::default()
    };
    Server::start(options).expect("a server")
}

/// An input has three lines: request line, content type and body. It is framed as valid HTTP.
fn requests(folder: &Path) -> Opened {
    let server = serve(folder);
    let json = |path: &str, body: &str| format!("POST {path}\napplication/json\n{body}");
    let form = |path: &str, body: &str| format!("POST {path}\napplication/x-www-form-urlencoded\n{body}");
    let part = |name: &str, value: &str| {
        format!("--X\r\nContent-Disposition: form-data; name={name}\r\n\r\n{value}\r\n")
    };
    let upload = |file: &str, text: &str| {
        let parts = part("source", "en") + &part("target", "de");
        format!("POST /translate_file\nmultipart/form-data; boundary=X\n{parts}")
            + &part(&format!("\"file\"; filename=\"{file}\""), text)
            + "--X--\r\n"
    };
    let seeds = [
        json(
            "/translate",
            r#"{"q": ["A dog.", "Two <b>cats</b>."], "source": "en", "target": "de", "format": "html"}"#,
        ),
        json("/translate", r#"{"q": "A dog.", "source": "auto", "target": "de", "alternatives": 2}"#),
        form("/translate", "q=A+dog.&q=%E4%B8%80&source=en&target=de&alternatives=1&api_key="),
        json("/detect", r#"{"q": "Der Hund."}"#),
        json(
            "/v1/translate",
            r#"{"text": ["A dog. A cat."], "model": "en-de", "beam": 3, "attention": "rows"}"#,
        ),
        json("/v1/translate", r#"{"text": "A dog.", "model": "en-de", "stream": true}"#),
        json("/v1/classify", r#"{"text": ["A dog."], "model": "labels"}"#),
        json(
            "/v1/generate",
            r#"{"prompt": "A dog", "model": "text", "tokens": 5, "temperature": 0.7, "seed": 3}"#,
        ),
        upload("a.txt", "A dog. A cat.\n"),
        upload("a.html", "<p>A <b>dog</b>.</p>"),
        "GET /v1/runs/run/metrics?after=0\n\n".to_owned(),
        "GET /v1/models\n\n".to_owned(),
        "GET /languages\n\n".to_owned(),
    ];
    let mut client = Client { address: server.address(), stream: None };
    let read = move |bytes: &[u8]| {
        // Keeps the server alive as long as its client.
        let _ = server.address();
        client.send(&framed(bytes))
    };
    Opened { seeds: seeds.map(String::into_bytes).to_vec(), read: Box::new(read) }
}

/// Builds a valid HTTP request around the input's lines.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let mut lines = bytes.splitn(3, |&byte| byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (first, kind, body) = (line(), line(), line());
    let clean = |bytes: &[u8]| -> String {
        bytes
            .iter()
            .filter(|byte| byte.is_ascii_graphic() || **byte == b' ')
            .map(|&byte| char::from(byte))
            .collect()
    };
    let first = clean(first);
    let (method, path) = first.split_once(' ').unwrap_or(("POST", "/translate"));
    let method = if method == "GET" { "GET" } else { "POST" };
    let path: String = path.chars().filter(|c| *c != ' ').collect();
    let path = if path.starts_with('/') { path } else { format!("/{path}") };
    let (kind, length) = (clean(kind), body.len());
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// A keep-alive connection, until the server closes it.
struct Client {
    address: SocketAddr,
    stream: Option<TcpStream>,
}

impl Client {
    fn send(&mut self, request: &[u8]) -> Verdict {
        let stream = self.stream.get_or_insert_with(|| connect(self.address));
        if stream.write_all(request).is_err() {
            // The server closed it after the last response.
            self.stream = None;
            return Verdict::Rejected;
        }
        let Some(answer) = answer(stream) else {
            self.stream = None;
            return Verdict::Rejected;
        };
        let status =
            answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u16>().ok());
        let head = String::from_utf8_lossy(&answer);
        assert!(!matches!(status, Some(500..=502)), "the server failed: {head}");
        if head.to_ascii_lowercase().contains("\r\nconnection: close") {
            self.stream = None;
        }
        if status == Some(200) { Verdict::Accepted } else { Verdict::Rejected }
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a server listens");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// Reads one complete response; `None` if the server closes the connection first.
fn answer(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 1 << 14];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
        let Some(head) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
        let length =
            text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let is_whole = match length {
            Some(length) => bytes.len() >= head + 4 + length,
            None if text.contains("transfer-encoding: chunked") => bytes.ends_with(b"0\r\n\r\n"),
            None => true,
        };
        if is_whole {
            return Some(bytes);
        }
    }
}

/// Raw bytes on a separate connection, which is closed after them. Whether the server still answers depends
/// on timing, so all inputs count as accepted.
fn http(folder: &Path) -> Opened {
    let server = serve(folder);
    let request = |head: &str, body: &str| {
        let length = body.len();
        format!(
            "{head} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    let seeds = [
        request("GET /health", ""),
        request("GET /v1/models?api_key=a", ""),
        request("POST /detect", r#"{"q": "A dog."}"#),
        "POST /detect HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\na\r\n{\"q\": \"a\"}\r\n0\r\n\r\n".to_owned(),
    ];
    let read = move |bytes: &[u8]| {
        let mut stream = connect(server.address());
        let sent = stream.write_all(bytes).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut answer = Vec::new();
        let read = sent.and_then(|()| stream.read_to_end(&mut answer));
        assert!(!answer.starts_with(b"HTTP/1.1 500"), "{}", String::from_utf8_lossy(&answer));
        let _ = read;
        Verdict::Accepted
    };
    Opened { seeds: seeds.map(String::into_bytes).to_vec(), read: Box::new(read) }
}
