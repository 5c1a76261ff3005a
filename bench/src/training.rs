//! A benchmark of training steps: one model in bf16 and f32 against the peer in both types, on the CPU or on
//! a GPU.

use std::time::Instant;

use anyhow::{Context, Result, bail};
use heedful::data::batch::Batch;
use heedful::models::Model;
use heedful::train::{Schedule, StepTrainer, TrainerOptions};
use heedful_tensor::cpu::{isa, threads};
use heedful_tensor::{DType, Device, cuda};
use serde_json::{Value, json};

use crate::{Allocator, Cell, Paired, Peer, Turn, print, report, take_turns};

const DEFAULT_ROUNDS: usize = 7;
const DTYPES: [DType; 2] = [DType::Bf16, DType::F32];

/// Seconds of one turn on a GPU.
const TURN: f64 = 0.5;
/// Warm-up steps on a GPU, in which CUDA graphs are captured and replayed.
const WARM_UPS: usize = 6;

/// A training benchmark: one batch, trained again and again.
pub struct TrainingRace<'a> {
    /// Name of the bench and of its peer's script.
    pub name: &'a str,
    /// The batch of every step.
    pub batch: &'a Batch,
    /// The tokens of a step, for tokens per second.
    pub tokens: usize,
    /// The request that builds the peer's model, without the dtype.
    pub peer: Value,
    /// The peer's configurations on a GPU, separated by commas: dtype and mode, separated by a space.
    pub gpu_modes: &'a str,
}

struct Options {
    rounds: usize,
    device: Device,
    modes: Option<String>,
}

impl Options {
    /// `None` if the command line is invalid.
    fn parse() -> Option<Options> {
        let mut options = Options { rounds: DEFAULT_ROUNDS, device: Device::Cpu, modes: None };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--device" if words.next()? == "cuda" => options.device = Device::Cuda,
                "--modes" => options.modes = Some(words.next()?),
                rounds => options.rounds = rounds.parse().ok().filter(|&rounds| rounds > 0)?,
            }
        }
        Some(options)
    }
}

/// Trains on one batch, and reports tokens per second. The arguments of the program are the number of rounds,
/// `--device cuda`, and `--modes` with configurations of the peer, separated by commas.
pub fn race_training<M: Model>(race: &TrainingRace<'_>, model: impl Fn() -> Result<M>) -> Result<()> {
    let &TrainingRace { name, batch, tokens, ref peer, gpu_modes } = race;
    let Some(Options { rounds, device, modes }) = Options::parse() else {
        bail!("usage: cargo xtask bench {name} [ROUNDS] [--device cuda [--modes \"TYPE MODE,…\"]]");
    };
    if device == Device::Cuda {
        return race_on_gpu(race, modes.as_deref().unwrap_or(gpu_modes), rounds, model);
    }
    println!("{} threads, {}, {rounds} rounds", threads::thread_count(), isa::current());
    let mut trainers = Vec::new();
    let mut peers = Vec::new();
    for dtype in DTYPES {
        let options = TrainerOptions::new(dtype, 1, Schedule::Constant { rate: 1e-4 });
        trainers.push(StepTrainer::new(model()?, options));
        let mut started = Peer::start(name, Allocator::AsInstalled)?;
        let mut build = peer.clone();
        build["op"] = json!("build");
        build["dtype"] = json!(dtype.to_string());
        started.ask(&build)?;
        peers.push(started);
    }
    // All sides in the same rounds, so that every pair of them can be compared.
    let mut sides: Vec<Turn<'_>> = Vec::new();
    for trainer in &mut trainers {
        sides.push(Box::new(|| {
            let start = Instant::now();
            trainer.step(batch)?;
            Ok(start.elapsed().as_secs_f64())
        }));
    }
    for peer in &mut peers {
        sides.push(Box::new(|| peer.ask_number(&json!({"op": "step"}), "seconds")));
    }
    // Two warm-up steps fill the memory pool and the caches of both sides.
    take_turns(2, &mut sides)?;
    let seconds = take_turns(rounds, &mut sides)?;
    let mut cells = Vec::new();
    for (cell, ours, peer) in [("bf16", 0, 0), ("f32", 1, 1), ("bf16 vs f32", 0, 1)] {
        let paired = Paired { ours: seconds[ours].clone(), peer: seconds[DTYPES.len() + peer].clone() };
        let cell = Cell::rate(name, cell, "tokens/s", tokens as f64, &paired);
        cells.push(cell);
    }
    report(name, &cells)
}

/// As [`race_training`] on a GPU, where steps are submitted without waiting for each. Without a peer
/// (`HEEDFUL_BENCH_PYTHON` is not set) only our side runs. `HEEDFUL_CUDA_PROFILE=1` prints the time of each
/// kernel.
fn race_on_gpu<M: Model>(
    race: &TrainingRace<'_>,
    modes: &str,
    rounds: usize,
    model: impl Fn() -> Result<M>,
) -> Result<()> {
    let &TrainingRace { name, batch, tokens, ref peer, .. } = race;
    println!("{}, {rounds} rounds", cuda::gpu()?.name());
    let mut peers = Vec::new();
    if std::env::var_os("HEEDFUL_BENCH_PYTHON").is_some() {
        // All peers import PyTorch in parallel.
        for mode in modes.split(',') {
            peers.push((mode, Peer::start(name, Allocator::AsInstalled)?));
        }
    }
    let mut trainers = Vec::new();
    for dtype in DTYPES {
        let model = model()?;
        model.params().move_to(Device::Cuda)?;
        let options = TrainerOptions::new(dtype, 1, Schedule::Constant { rate: 1e-4 });
        let mut trainer = StepTrainer::new(model, options);
        for _ in 0..WARM_UPS {
            trainer.step(batch)?;
        }
        cuda::take_profile();
        let [mean, steps] = round_on_gpu(&mut trainer, batch)?;
        println!("ours {dtype}: {:.0} tokens/s, {:.3} ms a step", tokens as f64 / mean, 1e3 * mean);
        for (what, count, milliseconds) in cuda::take_profile() {
            let (per_step, each) = (milliseconds / steps, 1e3 * milliseconds / count as f64);
            println!("  {per_step:8.3} ms  {:6.1} times  {each:8.1} us  {what}", count as f64 / steps);
        }
        trainers.push(trainer);
    }
    let mut built = Vec::new();
    for (name, mut started) in peers {
        let (dtype, mode) =
            name.split_once(' ').with_context(|| format!("`{name}` is not a dtype and a mode"))?;
        let mut build = peer.clone();
        build["op"] = json!("build");
        build["dtype"] = json!(dtype);
        build["device"] = json!("cuda");
        build["mode"] = json!(mode);
        let began = Instant::now();
        match started.ask(&build) {
            Ok(_) => {
                println!("PyTorch {name} is ready after {:.0} s", began.elapsed().as_secs_f64());
                built.push((name, started));
            }
            Err(error) => println!("PyTorch {name} does not take part: {error:#}"),
        }
    }
    if built.is_empty() {
        return Ok(());
    }
    let mut sides: Vec<Turn<'_>> = Vec::new();
    for trainer in &mut trainers {
        sides.push(Box::new(|| Ok(round_on_gpu(trainer, batch)?[0])));
    }
    for (_, peer) in &mut built {
        sides.push(Box::new(|| peer.ask_number(&json!({"op": "round", "seconds": TURN}), "seconds")));
    }
    let seconds = take_turns(rounds, &mut sides)?;
    drop(sides);
    let mut cells = Vec::new();
    for (ours, dtype) in DTYPES.iter().enumerate() {
        for (number, (other, _)) in built.iter().enumerate() {
            let paired = Paired { ours: seconds[ours].clone(), peer: seconds[DTYPES.len() + number].clone() };
            cells.push(Cell::rate(name, &format!("{dtype} vs {other}"), "tokens/s", tokens as f64, &paired));
        }
    }
    print(&cells);
    Ok(())
}

/// The mean seconds of a step, and the number of steps.
fn round_on_gpu<M: Model>(trainer: &mut StepTrainer<M>, batch: &Batch) -> Result<[f64; 2]> {
    let (start, mut steps) = (Instant::now(), 0.0);
    while start.elapsed().as_secs_f64() < TURN {
        trainer.submit(std::slice::from_ref(batch))?;
        steps += 1.0;
    }
    trainer.drain()?;
    Ok([start.elapsed().as_secs_f64() / steps, steps])
}
