//! Load generator: each client has its own connection and sends the next sentence after the response to the
//! last. All clients run on one thread: they share the machine with the server, and one thread for each would
//! cost more.

use std::cell::Cell;
use std::net::SocketAddr;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::runtime::Builder;

/// A server and the requests to send.
pub(super) struct Load {
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
}

/// The length of a run.
#[derive(Clone, Copy)]
pub(super) enum Amount {
    /// Responses within this many seconds are counted; the clients run before that and after.
    Seconds(f64),
    /// This many requests in total.
    Requests(usize),
}

/// Seconds before responses are counted.
const WARM_UP: f64 = 1.0;

/// The measurements of the clients.
#[derive(Default)]
pub(super) struct Measured {
    /// The latency of every request that was answered with 200.
    milliseconds: Vec<f64>,
    /// Responses with 503: the server is overloaded.
    pub(super) overloaded: usize,
    /// Responses with 4xx: the request is wrong.
    pub(super) bad_requests: usize,
    /// Any other responses.
    pub(super) errors: usize,
    /// The CPU time of the clients themselves, in seconds; 0 where the system does not report it.
    cpu_seconds: f64,
    /// From the first request to the last response.
    whole_seconds: f64,
    seconds: f64,
}

impl Load {
    /// Requests of one route.
    pub(super) fn new(address: SocketAddr, path: &str, bodies: &[Value]) -> Load {
        Load { address, requests: bodies.iter().map(|body| request(path, &body.to_string())).collect() }
    }

    /// Requests to our server: text in, text out.
    pub(super) fn ours(address: SocketAddr, texts: &[String]) -> Load {
        let body = |text: &String| json!({ "q": text, "source": "zh", "target": "en" });
        Load::new(address, "/translate", &texts.iter().map(body).collect::<Vec<_>>())
    }

    /// Raw requests.
    pub(super) fn of(address: SocketAddr, requests: Vec<Vec<u8>>) -> Load {
        Load { address, requests }
    }

    /// Requests to the peer: tokens in, tokens out.
    pub(super) fn peer(address: SocketAddr, sources: &[Vec<u32>]) -> Load {
        let body = |ids: &Vec<u32>| json!({ "ids": ids });
        Load::new(address, "/translate", &sources.iter().map(body).collect::<Vec<_>>())
    }

    /// Sends requests from this many clients.
    pub(super) fn run(&self, clients: usize, amount: Amount) -> Result<Measured> {
        let next = Cell::new(0);
        let begin = Instant::now();
        let passed = || begin.elapsed().as_secs_f64();
        let is_counted = || match amount {
            Amount::Seconds(seconds) => (WARM_UP..WARM_UP + seconds).contains(&passed()),
            Amount::Requests(_) => true,
        };
        let next_request = || {
            let number = next.replace(next.get() + 1);
            let is_over = match amount {
                Amount::Seconds(seconds) => passed() >= WARM_UP + seconds,
                Amount::Requests(count) => number >= count,
            };
            (!is_over).then_some(number)
        };
        let before = cpu_seconds();
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let all =
            runtime.block_on(try_join_all((0..clients).map(|_| self.client(&next_request, &is_counted))))?;
        let seconds = match amount {
            Amount::Seconds(seconds) => seconds,
            Amount::Requests(_) => begin.elapsed().as_secs_f64(),
        };
        let mut measured = Measured {
            seconds,
            cpu_seconds: cpu_seconds() - before,
            whole_seconds: begin.elapsed().as_secs_f64(),
            ..Measured::default()
        };
        for client in all {
            measured.merge(client);
        }
        Ok(measured)
    }

    async fn client(
        &self,
        next_request: &impl Fn() -> Option<usize>,
        is_counted: &impl Fn() -> bool,
    ) -> Result<Measured> {
        let stream = TcpStream::connect(self.address).await.context("the server does not listen")?;
        stream.set_nodelay(true)?;
        let (reader, mut writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let mut measured = Measured::default();
        while let Some(number) = next_request() {
            let begin = Instant::now();
            writer.write_all(&self.requests[number % self.requests.len()]).await?;
            let status = answer(&mut reader).await?;
            let milliseconds = begin.elapsed().as_secs_f64() * 1000.0;
            match status {
                200 if !is_counted() => {}
                200 => measured.milliseconds.push(milliseconds),
                503 => measured.overloaded += 1,
                400..500 => measured.bad_requests += 1,
                _ => measured.errors += 1,
            }
        }
        Ok(measured)
    }
}

impl Measured {
    /// Adds another run, and returns its seconds per response.
    pub(super) fn add(&mut self, other: Measured) -> f64 {
        let each = other.seconds / other.milliseconds.len().max(1) as f64;
        self.merge(other);
        each
    }

    fn merge(&mut self, other: Measured) {
        self.milliseconds.extend(other.milliseconds);
        self.overloaded += other.overloaded;
        self.bad_requests += other.bad_requests;
        self.errors += other.errors;
        self.cpu_seconds += other.cpu_seconds;
        self.whole_seconds += other.whole_seconds;
    }

    /// The clients' own share of all cores.
    pub(super) fn clients_share(&self) -> f64 {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        self.cpu_seconds / (self.whole_seconds * cores as f64)
    }

    /// The number of responses with 200.
    pub(super) fn answered(&self) -> usize {
        self.milliseconds.len()
    }

    /// A percentile of the latency, in milliseconds (`share` in `[0, 1]`).
    pub(super) fn percentile(&self, share: f64) -> f64 {
        let mut sorted = self.milliseconds.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        sorted.get((share * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
    }
}

/// The CPU time of this thread so far, as Linux counts it.
fn cpu_seconds() -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = statistics.split(' ').next().and_then(|first| first.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) * 1e-9
}

fn request(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Reads a whole response; returns its status.
async fn answer(reader: &mut BufReader<OwnedReadHalf>) -> Result<u16> {
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("no status in {line:?}"))?;
    let (mut length, mut is_chunked) = (0, false);
    loop {
        line.clear();
        reader.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        }
        is_chunked |= name.eq_ignore_ascii_case("transfer-encoding");
    }
    while is_chunked {
        line.clear();
        reader.read_line(&mut line).await?;
        let size = usize::from_str_radix(line.trim(), 16).context("a chunk has no size")?;
        // Includes the line end after it.
        reader.read_exact(&mut vec![0; size + 2]).await?;
        is_chunked = size > 0;
    }
    reader.read_exact(&mut vec![0; length]).await?;
    Ok(status)
}
