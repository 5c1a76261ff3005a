//! One training step (forward, backward, Adam) of a Transformer, ours against PyTorch's, in alternating
//! turns: `cargo xtask bench step [--tuned] [ROUNDS] [SIZE …]`.
//!
//! `--tuned` configures PyTorch's C library to keep freed memory, which avoids most page faults; without it
//! PyTorch runs as installed.
//!
//! Both sides train the same model on batches of the same lengths with dropout 0.1 on embeddings and
//! sublayers, label smoothing 0.1 and Adam. PyTorch pads a batch to its longest sentence; its batches have
//! sentences of similar length.

mod ours;
mod work;

use anyhow::{Context, Result, bail};
use heedful_bench::{Allocator, Cell, Paired, Peer, Quartiles, Turn, report, take_turns};
use heedful_tensor::cpu::gemm::measured_peak;
use heedful_tensor::cpu::{isa, threads};
use heedful_tensor::{DType, Precision};
use ours::Run;
use serde_json::json;
use work::{Lengths, Size, Spread};

const DEFAULT_ROUNDS: usize = 7;
const DTYPES: [DType; 2] = [DType::Bf16, DType::F32];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, size, dtype] = &arguments[..]
        && flag == "--memory"
    {
        let dtype = if dtype == "bf16" { DType::Bf16 } else { DType::F32 };
        println!("{}", ours::peak_memory(size.parse()?, dtype)?);
        return Ok(());
    }
    let (allocator, arguments) = match arguments.split_first() {
        Some((flag, rest)) if flag == "--tuned" => (Allocator::Tuned, rest),
        _ => (Allocator::AsInstalled, &arguments[..]),
    };
    let (rounds, sizes) = parse(arguments)?;
    println!("{} threads, {}, {rounds} rounds", threads::thread_count(), isa::current());
    let mut cells = Vec::new();
    for size in sizes {
        for spread in [Spread::Equal, Spread::Realistic] {
            speed(size, spread, rounds, allocator, &mut cells)?;
        }
        memory(size, &mut cells)?;
    }
    report("step", &cells)
}

fn parse(arguments: &[String]) -> Result<(usize, Vec<Size>)> {
    let usage = "usage: cargo xtask bench step [--tuned] [ROUNDS] [small] [base]";
    let (rounds, rest) = match arguments.first().map(|first| first.parse::<usize>()) {
        Some(Ok(0)) => bail!(usage),
        Some(Ok(rounds)) => (rounds, &arguments[1..]),
        _ => (DEFAULT_ROUNDS, arguments),
    };
    let sizes = rest.iter().map(|size| size.parse().context(usage)).collect::<Result<Vec<Size>>>()?;
    Ok((rounds, if sizes.is_empty() { vec![Size::Small, Size::Base] } else { sizes }))
}

/// Measures bf16 and f32 of both sides in the same rounds, so that every pair of them can be compared.
fn speed(
    size: Size,
    spread: Spread,
    rounds: usize,
    allocator: Allocator,
    cells: &mut Vec<Cell>,
) -> Result<()> {
    let batches = spread.batches(size);
    let tokens: usize = batches.iter().flatten().map(|&[_, target]| target).sum();
    let mut runs = DTYPES.map(|dtype| Run::new(size, dtype, &batches));
    let mut peers = Vec::new();
    for dtype in DTYPES {
        let mut peer = Peer::start("step", allocator)?;
        peer.ask(
            &json!({"op": "build", "size": size.name(), "dtype": dtype.to_string(), "batches": batches}),
        )?;
        peers.push(peer);
    }
    // Two warm-up epochs fill the memory pool and the caches of both sides.
    for _ in 0..2 {
        for run in &mut runs {
            run.epoch()?;
        }
        for peer in &mut peers {
            peer_epoch(peer, &batches)?;
        }
    }
    let mut peaks = Vec::new();
    let mut sides: Vec<Turn<'_>> = Vec::new();
    for run in &mut runs {
        sides.push(Box::new(|| run.epoch()));
    }
    for peer in &mut peers {
        sides.push(Box::new(|| peer_epoch(peer, &batches)));
    }
    sides.push(Box::new(|| {
        peaks.push(measured_peak(Precision::Bf16));
        Ok(0.0)
    }));
    let seconds = take_turns(rounds, &mut sides)?;
    drop(sides);
    let pair =
        |ours: usize, peer: usize| Paired { ours: seconds[ours].clone(), peer: seconds[2 + peer].clone() };
    let spread = spread.name();
    let tuned = if allocator == Allocator::Tuned { " vs tuned" } else { "" };
    for (name, ours, peer) in [
        (format!("{} bf16 {spread}{tuned}", size.name()), 0, 0),
        (format!("{} f32 {spread}{tuned}", size.name()), 1, 1),
        (format!("{} bf16 {spread} vs f32{tuned}", size.name()), 0, 1),
    ] {
        let cell = Cell::rate("step", &name, "tokens/s", tokens as f64, &pair(ours, peer));
        eprintln!("{name}: {:.2}", cell.ratio());
        cells.push(cell);
    }
    let operations = size.operations_per_pair_of_tokens() * tokens as f64;
    let shares: Vec<f64> =
        seconds[0].iter().zip(&peaks).map(|(seconds, peak)| operations / seconds / peak).collect();
    println!(
        "{} bf16 {spread}: matrix products alone would be {:.0} % of the chip's measured peak ({:.2} TFLOP/s, median)",
        size.name(),
        100.0 * Quartiles::of(&shares).median,
        Quartiles::of(&peaks).median / 1e12
    );
    Ok(())
}

fn peer_epoch(peer: &mut Peer, batches: &[Lengths]) -> Result<f64> {
    let mut seconds = 0.0;
    for batch in 0..batches.len() {
        seconds += peer.ask_number(&json!({"op": "step", "batch": batch}), "seconds")?;
    }
    Ok(seconds)
}

/// Peak memory of a process that only trains on equal lengths.
fn memory(size: Size, cells: &mut Vec<Cell>) -> Result<()> {
    for dtype in DTYPES {
        let program = std::env::current_exe()?;
        let output = std::process::Command::new(program)
            .args(["--memory", size.name(), &dtype.to_string()])
            .output()?;
        let ours: f64 = String::from_utf8(output.stdout)?.trim().parse().context("our own memory")?;
        // With the default allocator PyTorch returns memory to the system at once, so its peak is lower.
        let mut peer = Peer::start("step", Allocator::AsInstalled)?;
        let batches = Spread::Equal.batches(size);
        peer.ask(
            &json!({"op": "build", "size": size.name(), "dtype": dtype.to_string(), "batches": batches}),
        )?;
        for _ in 0..3 {
            peer_epoch(&mut peer, &batches)?;
        }
        let theirs = peer.ask_number(&json!({"op": "memory"}), "bytes")?;
        cells.push(Cell::memory("step", &format!("{} {dtype} memory", size.name()), ours, theirs));
    }
    Ok(())
}
