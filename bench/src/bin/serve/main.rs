//! The server under load on the loopback: `cargo xtask bench serve [MODEL FILE] [--rounds N] [--requests N] [--alone]`.
//!
//! ```text
//! offline      all sentences through `Translator::translate` in the same process: what batching could reach at best
//! c 1 … 256    so many clients, each with one sentence at a time on a connection of its own: sentences/s, p50, p99, errors
//! peer         the same load on CTranslate2 behind a FastAPI app with dynamic batching, round by round in turn
//! memory       resident bytes after a tenth of the requests and after all of them
//! ```
//!
//! Without a model there are two with first values for weights: one of the demo's size, one `base`. What they say is nonsense of a
//! bounded length, which takes as long as sense.

mod load;
mod work;

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use heedful::tensor::cpu::{isa, threads};
use heedful_bench::{Allocator, Cell, Paired, Peer, Quartiles, report, resident_memory};
use heedful_server::{ModelSpec, Server, ServerOptions};
use serde_json::json;

use self::load::{Load, Measured};
use self::work::{BEYOND, Work};

const CLIENTS: [usize; 4] = [1, 8, 64, 256];
const USAGE: &str = "usage: cargo xtask bench serve [MODEL FILE] [--rounds N] [--requests N] [--alone]";

/// Who takes part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Peers {
    CTranslate2,
    Nobody,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (mut rounds, mut requests, mut peers, mut files) = (3, 50_000, Peers::CTranslate2, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut number = || rest.next().context(USAGE)?.parse::<usize>().context(USAGE);
        match argument.as_str() {
            "--rounds" => rounds = number()?.max(1),
            "--requests" => requests = number()?,
            "--alone" => peers = Peers::Nobody,
            flag if flag.starts_with("--") => bail!(USAGE),
            file => files.push(file),
        }
    }
    println!("{} threads, {}, {rounds} rounds", threads::thread_count(), isa::current());
    let works = match files[..] {
        [] => vec![Work::demo_size()?, Work::base_size()?],
        [model, file] => vec![Work::read(Path::new(model), Path::new(file))?],
        _ => bail!(USAGE),
    };
    let mut cells = Vec::new();
    for work in &works {
        speed(work, rounds, peers, &mut cells)?;
    }
    memory(&works[0], requests)?;
    if peers == Peers::CTranslate2 { report("serve", &cells) } else { Ok(()) }
}

fn start(work: &Work) -> Result<Server> {
    let models = vec![ModelSpec::named("zh-en", work.folder())];
    let address = "127.0.0.1:0".parse().context("an address")?;
    let options = ServerOptions { address, models, search: work.options.clone(), ..ServerOptions::default() };
    Ok(Server::start(options)?)
}

fn speed(work: &Work, rounds: usize, peers: Peers, cells: &mut Vec<Cell>) -> Result<()> {
    let server = start(work)?;
    let ours = Load::ours(server.address(), &work.texts);
    let mut peer = match peers {
        Peers::CTranslate2 => Some(PeerServer::start(work)?),
        Peers::Nobody => None,
    };
    println!("{}: {} sentences", work.name, work.texts.len());
    for clients in CLIENTS {
        let count = work.requests(clients);
        let mut sides = (Measured::default(), Measured::default());
        let (mut offline, mut paired) = (Vec::new(), Paired::default());
        for _ in 0..rounds {
            let begin = Instant::now();
            let sentences = work.translate(count)?;
            offline.push(sentences as f64 / begin.elapsed().as_secs_f64());
            paired.ours.push(sides.0.add(ours.run(clients, count)?));
            if let Some(peer) = &mut peer {
                paired.peer.push(sides.1.add(peer.load.run(clients, count)?));
            }
        }
        let rate = |seconds: &[f64]| Quartiles::of(seconds).median;
        let served = count as f64 / rate(&paired.ours);
        println!(
            "{} c {clients:>3}: ours {served:.0}/s, p50 {:.1} ms, p99 {:.1} ms, {} errors; {:.2} of offline ({:.0}/s)",
            work.name,
            sides.0.percentile(0.5),
            sides.0.percentile(0.99),
            sides.0.errors,
            served / rate(&offline),
            rate(&offline),
        );
        if peer.is_some() {
            println!(
                "{} c {clients:>3}: peer {:.0}/s, p50 {:.1} ms, p99 {:.1} ms, {} errors",
                work.name,
                count as f64 / rate(&paired.peer),
                sides.1.percentile(0.5),
                sides.1.percentile(0.99),
                sides.1.errors,
            );
            let cell = format!("{} c {clients}", work.name);
            cells.push(Cell::rate("serve", &cell, "sent./s", count as f64, &paired));
        }
    }
    if let Some(mut peer) = peer {
        peer.compare(work)?;
    }
    server.stop();
    Ok(())
}

/// Resident memory after a tenth of the requests and after all.
fn memory(work: &Work, requests: usize) -> Result<()> {
    let server = start(work)?;
    let load = Load::ours(server.address(), &work.texts);
    load.run(64, requests / 10)?;
    let early = resident_memory()?;
    load.run(64, requests - requests / 10)?;
    let late = resident_memory()?;
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "{}: {:.1} MiB after {} requests, {:.1} MiB after {requests}: {:+.1} %",
        work.name,
        mebibytes(early),
        requests / 10,
        mebibytes(late),
        100.0 * (late as f64 / early as f64 - 1.0),
    );
    server.stop();
    Ok(())
}

/// CTranslate2 behind FastAPI.
struct PeerServer {
    peer: Peer,
    load: Load,
}

impl PeerServer {
    fn start(work: &Work) -> Result<PeerServer> {
        let mut peer = Peer::start("serve", Allocator::AsInstalled)?;
        let request = json!({
            "op": "load", "folder": work.folder(), "compute": "float32", "threads": threads::thread_count(),
            "beam": work.options.beam, "alpha": work.options.length_penalty, "beyond": BEYOND, "batch": 64, "wait_ms": 2,
        });
        let port = peer.ask_number(&request, "port")? as u16;
        Ok(PeerServer { peer, load: Load::peer(([127, 0, 0, 1], port).into(), &work.sources) })
    }

    /// Whether both translate alike; their length penalties differ a little.
    fn compare(&mut self, work: &Work) -> Result<()> {
        let sources = &work.sources[..work.sources.len().min(200)];
        let answer = self.peer.ask(&json!({ "op": "translate", "sources": sources }))?;
        let theirs: Vec<Vec<u32>> = serde_json::from_value(answer["outputs"].clone())?;
        let ours = work.outputs(sources)?;
        let same = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours == theirs).count();
        println!("{}: {same} of {} translations are the same on both sides", work.name, ours.len());
        Ok(())
    }
}
