//! A benchmark of training steps: one model in bf16 and f32 against the peer in both types.

use std::time::Instant;

use anyhow::{Result, bail};
use heedful::data::batch::Batch;
use heedful::models::Model;
use heedful::train::{Schedule, Trainer, TrainerOptions};
use heedful_tensor::DType;
use heedful_tensor::cpu::{isa, threads};
use serde_json::{Value, json};

use crate::{Allocator, Cell, Paired, Peer, Turn, report, take_turns};

const DEFAULT_ROUNDS: usize = 7;
const DTYPES: [DType; 2] = [DType::Bf16, DType::F32];

/// Trains on one batch, alternating, and reports `tokens` per second. `peer` is the request, without the type, that
/// builds the peer's model; the number of rounds is the program's first argument.
pub fn race_training<M: Model>(
    name: &str,
    batch: &Batch,
    tokens: usize,
    model: impl Fn() -> Result<M>,
    peer: &Value,
) -> Result<()> {
    let rounds = match std::env::args().nth(1).map(|rounds| rounds.parse()) {
        None => DEFAULT_ROUNDS,
        Some(Ok(rounds)) if rounds > 0 => rounds,
        Some(_) => bail!("usage: cargo xtask bench {name} [ROUNDS]"),
    };
    println!("{} threads, {}, {rounds} rounds", threads::thread_count(), isa::current());
    let mut trainers = Vec::new();
    let mut peers = Vec::new();
    for dtype in DTYPES {
        let options = TrainerOptions::new(dtype, 1, Schedule::Constant { rate: 1e-4 });
        trainers.push(Trainer::new(model()?, options));
        let mut started = Peer::start(name, Allocator::AsInstalled)?;
        let mut order = peer.clone();
        order["op"] = json!("build");
        order["dtype"] = json!(dtype.to_string());
        started.ask(&order)?;
        peers.push(started);
    }
    // All in the same rounds, so that every pair of them can be compared.
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
    // Two warm-up steps: then the pool and both sides' caches hold every size.
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
