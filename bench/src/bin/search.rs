//! Beam search on a GPU: seconds for a file of sentences, and the latency of single sentences.
//!
//! ```text
//! search MODEL FILE [--beam N] [--rounds R] [--alone N] [--device cuda|cpu] [--peer PYTHON] [--modes eager:2000,graph:2000,graph:512,compile:512]
//! ```
//!
//! A mode of the peer is MODE:BATCH, where MODE is how PyTorch runs the model, or `ctranslate2`. With
//! `--peer PYTHON` it is a race, in which the sides alternate in every round. `HEEDFUL_CUDA_PROFILE=1` prints
//! the time of each kernel.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use heedful::decode::{SearchOptions, search};
use heedful::models::DeviceChoice;
use heedful::tasks::translate::Translator;
use heedful::tensor::{Precision, cuda};
use heedful_bench::Peer;
use serde_json::json;

/// Beam search with a trained model, against PyTorch and CTranslate2
#[derive(Parser)]
struct Options {
    model: PathBuf,
    file: PathBuf,
    #[arg(long, default_value_t = 5)]
    beam: usize,
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Sentences that are also decoded one by one
    #[arg(long, default_value_t = 40)]
    alone: usize,
    /// cuda or cpu
    #[arg(long, default_value = "cuda", value_parser = device)]
    device: DeviceChoice,
    /// Python with the peers: race against them
    #[arg(long)]
    peer: Option<String>,
    /// MODE:BATCH of each peer
    #[arg(long, value_delimiter = ',', default_value = "eager:2000,graph:2000,graph:512,compile:512")]
    modes: Vec<String>,
}

fn device(name: &str) -> Result<DeviceChoice, String> {
    match name {
        "cuda" => Ok(DeviceChoice::Cuda),
        "cpu" => Ok(DeviceChoice::Cpu),
        _ => Err("cuda or cpu".to_owned()),
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    let translator = Translator::open(&options.model)?;
    let chosen = options.device.place(translator.model())?;
    let text = std::fs::read_to_string(&options.file)
        .with_context(|| format!("cannot read {}", options.file.display()))?;
    let sources: Vec<Vec<u32>> =
        text.lines().map(|line| translator.encode(line)).filter(|tokens| !tokens.is_empty()).collect();
    let tokens: usize = sources.iter().map(Vec::len).sum();
    println!("{}: {} sentences of {tokens} tokens, beam {}", chosen.device, sources.len(), options.beam);

    let search_options =
        SearchOptions { beam: options.beam, compute: Some(Precision::Bf16), ..SearchOptions::default() };
    let run = |sources: &[Vec<u32>]| -> Result<(f64, Vec<Vec<u32>>)> {
        let began = Instant::now();
        let found = search(translator.model(), sources, &search_options)?;
        let seconds = began.elapsed().as_secs_f64();
        let best =
            found.into_iter().map(|best| best.into_iter().next().map_or_else(Vec::new, |best| best.tokens));
        Ok((seconds, best.collect()))
    };
    let (first, outputs) = run(&sources)?;
    println!("ours, first time    {first:.3} s");

    cuda::take_profile();
    run(&sources)?;
    for (name, count, milliseconds) in cuda::take_profile().iter().take(25) {
        println!("{milliseconds:9.2} ms  {count:6}  {name}");
    }

    let mut peers = Vec::new();
    if let Some(python) = &options.peer {
        for mode in &options.modes {
            let (kind, batch) = mode.split_once(':').context("a mode is MODE:BATCH")?;
            let script = if kind == "ctranslate2" { "search_ctranslate2.py" } else { "search.py" };
            let script = Peer::folder().join(script);
            let device = if options.device == DeviceChoice::Cpu { "cpu" } else { "cuda" };
            let mut command = Command::new(python);
            command.args(["-B".as_ref(), script.as_os_str(), options.model.as_os_str()]);
            command.args([kind, batch, device]);
            peers.push((mode.to_owned(), Peer::spawn(mode, &mut command)?));
        }
    }
    let alone: Vec<Vec<u32>> = sources
        .iter()
        .step_by((sources.len() / options.alone.max(1)).max(1))
        .take(options.alone)
        .cloned()
        .collect();
    peers.retain_mut(|(mode, peer)| match first_time(peer, &sources, options.beam) {
        Ok((seconds, found)) => {
            let same = found.iter().zip(&outputs).filter(|(found, ours)| found == ours).count();
            println!(
                "{mode:<18}  {seconds:.3} s the first time; {same} of {} outputs are identical to ours",
                outputs.len()
            );
            true
        }
        Err(error) => {
            println!("{mode:<18}  does not take part: {error:#}");
            false
        }
    });
    for round in 1..=options.rounds {
        let (ours, _) = run(&sources)?;
        println!("round {round}: ours {ours:.3} s, {:.0} sentences/s", sources.len() as f64 / ours);
        for (mode, peer) in &mut peers {
            let request = json!({ "op": "translate", "sources": sources, "beam": options.beam });
            let theirs = peer.ask_number(&request, "seconds")?;
            println!("round {round}: {mode} {theirs:.3} s, {:.2} times as long", theirs / ours);
        }
    }
    if !alone.is_empty() {
        let mut ours = Vec::new();
        // First a pass to capture CUDA graphs for new sizes, on both sides.
        for source in &alone {
            run(std::slice::from_ref(source))?;
        }
        for source in &alone {
            let (seconds, output) = run(std::slice::from_ref(source))?;
            ours.push((seconds, output[0].len()));
        }
        println!("alone: ours {}", latency(&ours));
        for (mode, peer) in &mut peers {
            let mut theirs = Vec::new();
            for source in &alone {
                let answer =
                    peer.ask(&json!({ "op": "translate", "sources": [source], "beam": options.beam }))?;
                let length = answer["outputs"][0].as_array().map_or(0, Vec::len);
                theirs.push((answer["seconds"].as_f64().unwrap_or(0.0), length));
            }
            println!("alone: {mode} {}", latency(&theirs));
        }
    }
    Ok(())
}

/// The peer's first run: its seconds and outputs.
fn first_time(peer: &mut Peer, sources: &[Vec<u32>], beam: usize) -> Result<(f64, Vec<Vec<u32>>)> {
    let answer = peer.ask(&json!({ "op": "translate", "sources": sources, "beam": beam }))?;
    let seconds = answer["seconds"].as_f64().context("no seconds in the peer's answer")?;
    Ok((seconds, serde_json::from_value(answer["outputs"].clone())?))
}

/// The median seconds of a sentence, and the mean seconds of a token.
fn latency(times: &[(f64, usize)]) -> String {
    let mut seconds: Vec<f64> = times.iter().map(|&(seconds, _)| seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let (sum, tokens) =
        (seconds.iter().sum::<f64>(), times.iter().map(|&(_, length)| length + 1).sum::<usize>());
    format!(
        "{:.2} ms a sentence (median), {:.3} ms a token",
        1e3 * seconds[seconds.len() / 2],
        1e3 * sum / tokens as f64
    )
}
