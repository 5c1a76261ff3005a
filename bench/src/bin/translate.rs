//! Beam search on a trained model, ours against PyTorch's, turn by turn: `cargo xtask bench translate MODEL FILE [ROUNDS]`.
//!
//! Both sides get the same weights and the same sentences as tokens, and search alike: beam 4, α 0.6, at most 50 tokens beyond the
//! source. PyTorch has a KV cache, drops finished sentences, batches sentences of similar length and uses the fastest of
//! some batch sizes. Peak memory is that of a process that loads the model and translates everything once, the
//! programs themselves counted in.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use heedful::data::SpecialTokens;
use heedful::decode::{SearchOptions, search};
use heedful::tasks::translate::Translator;
use heedful::tensor::DType;
use heedful::tensor::cpu::{isa, threads};
use heedful_bench::{Allocator, Cell, Peer, peak_memory, race, report};
use serde_json::{Value, json};

/// The batch sizes, in sentences, that PyTorch tries.
const PEER_SIZES: [u64; 3] = [16, 64, 256];
const DEFAULT_ROUNDS: usize = 5;
const USAGE: &str = "usage: cargo xtask bench translate MODEL FILE [ROUNDS]";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (model, file, rest) = match &arguments[..] {
        [model, file, rest @ ..] => (Path::new(model), Path::new(file), rest),
        _ => bail!(USAGE),
    };
    if let [flag, dtype] = rest
        && flag == "--memory"
    {
        let work = Work::read(model, file, if dtype == "bf16" { DType::Bf16 } else { DType::F32 })?;
        work.translate()?;
        println!("{}", peak_memory()?);
        return Ok(());
    }
    let rounds = match rest {
        [] => DEFAULT_ROUNDS,
        [rounds] => rounds.parse().context(USAGE)?,
        _ => bail!(USAGE),
    };
    println!("{} threads, {}, {rounds} rounds", threads::thread_count(), isa::current());
    let mut cells = Vec::new();
    for dtype in [DType::Bf16, DType::F32] {
        let size = speed(&Work::read(model, file, dtype)?, model, rounds, &mut cells)?;
        memory(model, file, dtype, size, &mut cells)?;
    }
    report("translate", &cells)
}

/// What both sides do.
struct Work {
    translator: Translator,
    sources: Vec<Vec<u32>>,
    options: SearchOptions,
}

impl Work {
    fn read(model: &Path, file: &Path, compute: DType) -> Result<Work> {
        let translator = Translator::open(model)?;
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let sources: Vec<Vec<u32>> =
            text.lines().map(|line| translator.encode(line)).filter(|source| !source.is_empty()).collect();
        let options = SearchOptions { compute: compute.into(), ..SearchOptions::default() };
        Ok(Work { translator, sources, options })
    }

    fn translate(&self) -> Result<Vec<Vec<u32>>> {
        let found = search(self.translator.model(), &self.sources, &self.options)?;
        Ok(found.into_iter().map(|mut found| found.remove(0).tokens).collect())
    }

    fn request(&self, model: &Path, sizes: &[u64]) -> Value {
        let SearchOptions { beam, length_penalty, compute, .. } = &self.options;
        let SpecialTokens { bos, eos } = self.translator.model().special_tokens();
        json!({"op": "load", "folder": model, "sources": self.sources, "dtype": compute.to_string(), "beam": beam,
               "alpha": length_penalty, "bos": bos, "eos": eos, "sizes": sizes})
    }
}

/// Measures speed; returns PyTorch's fastest batch size.
fn speed(work: &Work, model: &Path, rounds: usize, cells: &mut Vec<Cell>) -> Result<u64> {
    let name = work.options.compute.to_string();
    let mut peer = Peer::start("translate", Allocator::AsInstalled)?;
    let answer = peer.ask(&work.request(model, &PEER_SIZES))?;
    let size = answer["size"].as_u64().context("the peer names no size")?;
    println!("{name}: PyTorch is fastest with {size} sentences at a time");
    let ours = work.translate()?;
    let theirs = peer.ask(&json!({"op": "translate"}))?;
    let theirs: Vec<Vec<u32>> = serde_json::from_value(theirs["outputs"].clone())?;
    let same = ours.iter().zip(&theirs).filter(|(ours, theirs)| ours == theirs).count();
    println!("{name}: {same} of {} translations are the same on both sides", ours.len());
    let turn = || {
        let start = Instant::now();
        work.translate()?;
        Ok(start.elapsed().as_secs_f64())
    };
    let paired = race(rounds, turn, || peer.ask_number(&json!({"op": "translate"}), "seconds"))?;
    cells.push(Cell::rate("translate", &name, "sent./s", ours.len() as f64, &paired));
    Ok(size)
}

/// Measures peak memory, each side in a process of its own.
fn memory(model: &Path, file: &Path, dtype: DType, size: u64, cells: &mut Vec<Cell>) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.arg(model).arg(file).args(["--memory", &dtype.to_string()]).output()?;
    let ours: f64 = String::from_utf8(output.stdout)?.trim().parse().context("our own memory")?;
    let mut peer = Peer::start("translate", Allocator::AsInstalled)?;
    peer.ask(&Work::read(model, file, dtype)?.request(model, &[size]))?;
    let theirs = peer.ask_number(&json!({"op": "memory"}), "bytes")?;
    cells.push(Cell::memory("translate", &format!("{dtype} memory"), ours, theirs));
    Ok(())
}
