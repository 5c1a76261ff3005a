//! The server under load on the loopback.
//!
//! ```text
//! cargo xtask bench serve [MODEL FILE] [--rounds N] [--seconds N] [--requests N] [--clients N] [--batch-wait MS]
//!                         [--alone] [--memory]
//! ```
//!
//! ```text
//! offline      all sentences through `Translator::translate` in the same process: an upper bound for batching
//! c 1 … 256    this many clients, each with one sentence at a time on a connection of its own: sentences/s, p50, p99, errors
//! peer         the same load on CTranslate2 behind a FastAPI app with dynamic batching, in alternating rounds
//! limit        256 clients and a queue of 32 sentences: how many requests are answered, and how many rejected with 503
//! memory       requests of every kind and length: resident bytes after each tenth of them; the last must be within 5 % of the
//!              second. `--memory` measures only this and needs no peer
//! ```
//!
//! Without a model argument, two untrained models are used: one of the demo's size, one `base`. They generate
//! random text of bounded length, which takes as long as real text.

mod load;
mod mixed;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;
use heedful::tensor::cpu::{isa, threads};
use heedful_bench::{Allocator, Cell, Paired, Peer, Quartiles, fastest_config, report, resident_memory};
use heedful_server::{Limits, ModelSpec, Server, ServerOptions};
use serde_json::json;

use self::load::{Amount, Load, Measured};
use self::work::Work;

/// The server under load on the loopback: `cargo xtask bench serve`
#[derive(Parser)]
struct Options {
    /// A trained model, in place of untrained ones
    #[arg(requires = "file")]
    model: Option<PathBuf>,
    /// Its sentences
    file: Option<PathBuf>,
    /// The numbers of concurrent clients; one run for each
    #[arg(long, value_delimiter = ',', default_value = "1,8,64,256")]
    clients: Vec<usize>,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds for each side in each round
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// The number of requests of the memory test
    #[arg(long, default_value_t = 100_000)]
    requests: usize,
    /// Milliseconds that a request waits for others to batch with [default: the server's]
    #[arg(long, value_name = "MS")]
    batch_wait: Option<u64>,
    /// Without the peer
    #[arg(long)]
    alone: bool,
    /// Measure only memory
    #[arg(long)]
    memory: bool,
}

fn main() -> Result<()> {
    let options = Options::parse();
    println!("{} threads, {}, {} rounds", threads::thread_count(), isa::current(), options.rounds);
    if options.memory {
        return memory(&Work::demo_size()?, &options);
    }
    let works = match options.model.as_deref().zip(options.file.as_deref()) {
        None => vec![Work::demo_size()?, Work::base_size()?],
        Some((model, file)) => vec![Work::read(model, file)?],
    };
    let mut cells = Vec::new();
    for work in &works {
        speed(work, &options, &mut cells)?;
    }
    limit(&works[0], &options)?;
    memory(&works[0], &options)?;
    if options.alone { Ok(()) } else { report("serve", &cells) }
}

fn start(work: &Work, options: &Options, limits: Limits) -> Result<Server> {
    Ok(Server::start(ServerOptions {
        address: "127.0.0.1:0".parse().context("an address")?,
        models: vec![ModelSpec::named("zh-en", work.folder())],
        search: work.options.clone(),
        batch_wait: options.batch_wait.map_or(ServerOptions::default().batch_wait, Duration::from_millis),
        limits,
        ..ServerOptions::default()
    })?)
}

fn speed(work: &Work, options: &Options, cells: &mut Vec<Cell>) -> Result<()> {
    let server = start(work, options, Limits::default())?;
    let ours = Load::ours(server.address(), &work.texts);
    let mut peer = if options.alone { None } else { Some(PeerServer::load(work)?) };
    println!("{}: {} sentences", work.name, work.texts.len());
    for &clients in &options.clients {
        let amount = Amount::Seconds(options.seconds);
        let theirs = peer.as_mut().map(|peer| peer.start(work, clients)).transpose()?;
        let mut sides = (Measured::default(), Measured::default());
        let (mut offline, mut paired) = (Vec::new(), Paired::default());
        for _ in 0..options.rounds.max(1) {
            offline.push(work.translate(options.seconds)?);
            paired.ours.push(sides.0.add(ours.run(clients, amount)?));
            if let Some(theirs) = &theirs {
                paired.peer.push(sides.1.add(theirs.run(clients, amount)?));
            }
        }
        let rate = |seconds: &[f64]| 1.0 / Quartiles::of(seconds).median;
        let describe = |side: &Measured, rate: f64| {
            let (p50, p99) = (side.percentile(0.5), side.percentile(0.99));
            let errors = side.overloaded + side.bad_requests + side.errors;
            format!("{rate:.0}/s, p50 {p50:.1} ms, p99 {p99:.1} ms, {errors} errors")
        };
        let (served, offline) = (rate(&paired.ours), rate(&offline));
        let name = format!("{} c {clients}", work.name);
        println!(
            "{name}: ours {}; {:.2} of offline ({offline:.0}/s); the clients took {:.0} % of the cores",
            describe(&sides.0, served),
            served / offline,
            100.0 * sides.0.clients_share()
        );
        if peer.is_some() {
            println!("{name}: peer {}", describe(&sides.1, rate(&paired.peer)));
            cells.push(Cell::rate("serve", &name, "sent./s", 1.0, &paired));
        }
    }
    if let Some(mut peer) = peer {
        peer.compare(work)?;
    }
    server.stop();
    Ok(())
}

/// Overload: more requests than the queue can hold.
fn limit(work: &Work, options: &Options) -> Result<()> {
    let queue = 32;
    let server = start(work, options, Limits { queue, sentences: queue, ..Limits::default() })?;
    let load = Load::ours(server.address(), &work.texts);
    // For comparison, first with as many clients as the queue can hold.
    for clients in [queue, 256] {
        let measured = load.run(clients, Amount::Seconds(options.seconds))?;
        println!(
            "{}: a queue of {queue}, {clients} clients: {} answered, {} rejected with 503, {} other errors",
            work.name,
            measured.answered(),
            measured.overloaded,
            measured.bad_requests + measured.errors
        );
    }
    server.stop();
    Ok(())
}

/// The largest batch of the peer.
const MAX_BATCH: usize = 64;
/// Sentences of a trial of the peer.
const TRIAL_SENTENCES: usize = 200;

/// The maximum relative difference of resident memory between the last tenth and the second, which is warm.
const MAX_GROWTH: f64 = 0.05;

/// Resident memory over requests of every kind and length.
fn memory(work: &Work, options: &Options) -> Result<()> {
    // On a busy machine a request may wait longer than the default timeout; that must not count as an error.
    let limits = Limits { timeout: Duration::from_secs(3600), ..Limits::default() };
    let server = start(work, options, limits)?;
    let load = Load::of(server.address(), mixed::requests(&work.texts));
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut resident = Vec::new();
    for tenth in 1..=10 {
        let measured = load.run(64, Amount::Requests(options.requests / 10))?;
        resident.push(resident_memory()?);
        println!(
            "{}: {tenth}/10 of {} mixed requests, {:.1} MiB: {} answered, {} bad requests, {} rejected with 503, {} other errors",
            work.name,
            options.requests,
            mebibytes(resident[tenth - 1]),
            measured.answered(),
            measured.bad_requests,
            measured.overloaded,
            measured.errors,
        );
        if measured.errors > 0 {
            bail!("{} requests failed", measured.errors);
        }
    }
    server.stop();
    let growth = resident[9] as f64 / resident[1] as f64 - 1.0;
    println!("{}: resident memory from the second tenth to the last: {:+.1} %", work.name, 100.0 * growth);
    if growth.abs() > MAX_GROWTH {
        bail!("resident memory must stay within {:.0} %", 100.0 * MAX_GROWTH);
    }
    Ok(())
}

/// CTranslate2 behind FastAPI.
struct PeerServer {
    peer: Peer,
    computes: Vec<String>,
}

impl PeerServer {
    fn load(work: &Work) -> Result<PeerServer> {
        let mut peer = Peer::start("serve", Allocator::AsInstalled)?;
        let request = json!({
            "op": "load", "folder": work.folder(), "computes": ["float32", "int8", "bfloat16", "int8_bfloat16", "int16"],
            "threads": threads::thread_count(), "beam": work.options.beam, "alpha": work.options.length_penalty,
            "longest": work.max_length, "wait_ms": 2,
        });
        let computes = serde_json::from_value(peer.ask(&request)?["computes"].take())?;
        Ok(PeerServer { peer, computes })
    }

    /// Starts the peer in its fastest configuration for this many clients, whose sentences form a batch.
    fn start(&mut self, work: &Work, clients: usize) -> Result<Load> {
        let batch = clients.min(MAX_BATCH);
        let sources = &work.sources[..work.sources.len().min(TRIAL_SENTENCES).min(16 * batch)];
        let config = fastest_config(&self.computes, threads::thread_count(), |config| {
            let request = json!({ "op": "trial", "way": config, "sources": sources, "batch": batch });
            self.peer.ask_number(&request, "seconds")
        })?;
        println!("{} c {clients}: the peer computes in {config}", work.name);
        let answer = self.peer.ask(&json!({ "op": "start", "way": config, "batch": batch }))?;
        let port = answer["port"].as_u64().context("the peer's answer has no port")? as u16;
        Ok(Load::peer(([127, 0, 0, 1], port).into(), &work.sources))
    }

    /// Compares the translations of both sides; their length penalties differ slightly.
    fn compare(&mut self, work: &Work) -> Result<()> {
        let sources = &work.sources[..work.sources.len().min(TRIAL_SENTENCES)];
        let answer = self.peer.ask(&json!({ "op": "translate", "sources": sources }))?;
        let theirs: Vec<Vec<u32>> = serde_json::from_value(answer["outputs"].clone())?;
        let ours = work.outputs(sources)?;
        let same = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours == theirs).count();
        println!("{}: {same} of {} translations are the same on both sides", work.name, ours.len());
        Ok(())
    }
}
