//! A plain HTTP/1.1 client, which can also send requests that a library would refuse.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use heedful_server::Server;
use serde_json::Value;

/// Long enough for the slowest machine; only failing tests wait this long.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The message of an error.
    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_else(|| panic!("no error: {}", self.body)).to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line =
            self.head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        line.split_once(':').map(|(_, value)| value.trim())
    }

    /// The names and data of server-sent events.
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        let event = |block: &str| {
            let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
            (field("event: ").to_owned(), serde_json::from_str(field("data: ")).expect("JSON"))
        };
        self.body.split("\n\n").filter(|block| !block.is_empty()).map(event).collect()
    }
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a server listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a time limit");
    stream.set_write_timeout(Some(TIMEOUT)).expect("a time limit");
    stream
}

/// A request as bytes.
pub(crate) fn request(method: &str, path: &str, kind: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Sends bytes and reads the whole response.
pub(crate) fn send(address: SocketAddr, bytes: &[u8]) -> Reply {
    let mut stream = connect(address);
    stream.write_all(bytes).expect("the server reads");
    read(&mut stream)
}

/// Like [`send`], to a server that may disconnect before it answers.
pub(crate) fn attempt(address: SocketAddr, bytes: &[u8]) -> Option<Reply> {
    let mut stream = connect(address);
    stream.write_all(bytes).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    (!answer.is_empty()).then(|| parse(answer))
}

pub(crate) fn read(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    parse(bytes)
}

fn parse(bytes: Vec<u8>) -> Reply {
    let text = String::from_utf8(bytes).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer but {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if is_chunked { unchunked(body) } else { body.to_owned() };
    Reply { status, head: head.to_owned(), body }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        whole.push_str(&rest[..size]);
        body = rest[size..].strip_prefix("\r\n").unwrap_or_default();
    }
    whole
}

pub(crate) fn get(server: &Server, path: &str) -> Reply {
    send(server.address(), request("GET", path, "text/plain", "").as_bytes())
}

pub(crate) fn post(server: &Server, path: &str, body: &Value) -> Reply {
    send(server.address(), request("POST", path, "application/json", &body.to_string()).as_bytes())
}

/// A number from `/metrics`: all lines of a name, summed.
pub(crate) fn metric(server: &Server, name: &str) -> u64 {
    value(&get(server, "/metrics").body, name)
}

/// Like [`metric`], from a given page.
pub(crate) fn value(page: &str, name: &str) -> u64 {
    let of_name = |line: &&str| {
        let rest = line.strip_prefix("heedful_").and_then(|line| line.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    let lines = page.lines().filter(of_name);
    lines.map(|line| line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).expect("a number")).sum()
}

/// The result of a thread.
pub(crate) fn joined<T>(what: &str, thread: JoinHandle<T>) -> T {
    until(what, || thread.is_finished());
    thread.join().unwrap_or_else(|_| panic!("no {what}: its thread panicked"))
}

/// Runs another program until it ends.
pub(crate) fn finish(command: &mut Command) -> Output {
    let name = command.get_program().display().to_string();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap_or_else(|error| panic!("{name} does not start: {error}"));
    let process = child.id().to_string();
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = receiver.recv_timeout(10 * TIMEOUT) else {
        let _ = Command::new("kill").args(["-9", &process]).status();
        panic!("{name} did not end within {:?}", 10 * TIMEOUT);
    };
    output.expect("a process that can be waited for")
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TIMEOUT, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
