//! Clients: each has a connection of its own and sends the next sentence when it has the answer to the last.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;

/// A server and what it is asked.
pub(super) struct Load {
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
}

/// How long a run is.
#[derive(Clone, Copy)]
pub(super) enum Amount {
    /// No request begins later.
    Seconds(f64),
    /// So many in all.
    Requests(usize),
}

/// What clients saw.
#[derive(Default)]
pub(super) struct Measured {
    milliseconds: Vec<f64>,
    pub(super) errors: usize,
    seconds: f64,
}

impl Load {
    /// Our own interface: text in, text out.
    pub(super) fn ours(address: SocketAddr, texts: &[String]) -> Load {
        let body = |text: &String| json!({ "q": text, "source": "zh", "target": "en" }).to_string();
        Load { address, requests: texts.iter().map(|text| request(&body(text))).collect() }
    }

    /// The peer's: tokens in, tokens out.
    pub(super) fn peer(address: SocketAddr, sources: &[Vec<u32>]) -> Load {
        let body = |ids: &Vec<u32>| json!({ "ids": ids }).to_string();
        Load { address, requests: sources.iter().map(|ids| request(&body(ids))).collect() }
    }

    /// Lets so many clients send requests.
    pub(super) fn run(&self, clients: usize, amount: Amount) -> Result<Measured> {
        let next = AtomicUsize::new(0);
        let begin = Instant::now();
        let is_over = |number: usize| match amount {
            Amount::Seconds(seconds) => begin.elapsed().as_secs_f64() >= seconds,
            Amount::Requests(count) => number >= count,
        };
        let all = thread::scope(|scope| {
            let client = || scope.spawn(|| self.client(&next, &is_over));
            let clients: Vec<_> = (0..clients).map(|_| client()).collect();
            clients.into_iter().map(|client| client.join().expect("a client")).collect::<Result<Vec<_>>>()
        })?;
        let mut measured = Measured { seconds: begin.elapsed().as_secs_f64(), ..Measured::default() };
        for part in all {
            measured.errors += part.errors;
            measured.milliseconds.extend(part.milliseconds);
        }
        Ok(measured)
    }

    fn client(&self, next: &AtomicUsize, is_over: &(impl Fn(usize) -> bool + Sync)) -> Result<Measured> {
        let stream = TcpStream::connect(self.address).context("the server does not listen")?;
        stream.set_nodelay(true)?;
        let mut writer = stream.try_clone()?;
        let mut reader = BufReader::new(stream);
        let mut measured = Measured::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if is_over(number) {
                return Ok(measured);
            }
            let begin = Instant::now();
            writer.write_all(&self.requests[number % self.requests.len()])?;
            if answer(&mut reader)? == 200 {
                measured.milliseconds.push(begin.elapsed().as_secs_f64() * 1000.0);
            } else {
                measured.errors += 1;
            }
        }
    }
}

impl Measured {
    /// Adds another run; gives its seconds for each answer.
    pub(super) fn add(&mut self, other: Measured) -> f64 {
        let each = other.seconds / other.milliseconds.len().max(1) as f64;
        self.milliseconds.extend(other.milliseconds);
        self.errors += other.errors;
        each
    }

    /// So many of the answers came within this many milliseconds.
    pub(super) fn percentile(&self, share: f64) -> f64 {
        let mut sorted = self.milliseconds.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        sorted.get((share * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
    }
}

fn request(body: &str) -> Vec<u8> {
    format!(
        "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Reads an answer whole; its status.
fn answer(reader: &mut BufReader<TcpStream>) -> Result<u16> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.with_context(|| format!("no status in {line:?}"))?;
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    Ok(status)
}
