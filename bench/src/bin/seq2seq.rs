//! One training step (forward, backward, Adam) of a recurrent encoder-decoder with additive attention, ours against
//! PyTorch's, turn by turn: `cargo xtask bench seq2seq [ROUNDS]`.
//!
//! Two layers of LSTM read in both directions, one layer of LSTM writes; d 512, 8000 subwords, dropout 0.2, label
//! smoothing 0.1. One batch of 64 pairs of all lengths.

use std::time::Instant;

use anyhow::{Result, bail};
use heedful::batch::Batch;
use heedful::layers::Score;
use heedful::recurrent::{Hardness, RecurrentAttention, RecurrentConfig, Seq2Seq};
use heedful::train::{Schedule, Trainer, TrainerOptions};
use heedful_bench::{Allocator, Cell, Paired, Peer, Turn, realistic_lengths, report, take_turns};
use heedful_tensor::DType;
use heedful_tensor::cpu::{isa, threads};
use heedful_tensor::random::Stream;
use serde_json::json;

const D: usize = 512;
const VOCABULARY: usize = 8000;
const PAIRS: u32 = 64;
const DEFAULT_ROUNDS: usize = 7;
const DTYPES: [DType; 2] = [DType::Bf16, DType::F32];

fn main() -> Result<()> {
    let rounds = match std::env::args().nth(1).map(|rounds| rounds.parse()) {
        None => DEFAULT_ROUNDS,
        Some(Ok(rounds)) if rounds > 0 => rounds,
        Some(_) => bail!("usage: cargo xtask bench seq2seq [ROUNDS]"),
    };
    println!("{} threads, {}, {rounds} rounds", threads::thread_count(), isa::current());
    let batch = batch()?;
    let seconds = measure(&batch, rounds)?;
    let tokens = batch.target_tokens() as f64;
    let mut cells = Vec::new();
    for (name, ours, peer) in [("bf16", 0, 0), ("f32", 1, 1), ("bf16 vs f32", 0, 1)] {
        let paired = Paired { ours: seconds[ours].clone(), peer: seconds[DTYPES.len() + peer].clone() };
        let cell = Cell::rate("seq2seq", name, "tokens/s", tokens, &paired);
        eprintln!("{name}: {:.2}", cell.ratio());
        cells.push(cell);
    }
    report("seq2seq", &cells)
}

/// Seconds of our types, then of the peer's, all in the same rounds, so that every pair of them can be compared.
fn measure(batch: &Batch, rounds: usize) -> Result<Vec<Vec<f64>>> {
    let mut trainers = Vec::new();
    let mut peers = Vec::new();
    for dtype in DTYPES {
        let options = TrainerOptions::new(dtype, 1, Schedule::Constant { rate: 1e-4 });
        trainers.push(Trainer::new(Seq2Seq::new(config(), 1)?, options));
        let mut peer = Peer::start("seq2seq", Allocator::AsInstalled)?;
        let lengths = realistic_lengths(PAIRS);
        peer.ask(&json!({"op": "build", "d": D, "vocabulary": VOCABULARY, "dtype": dtype.to_string(),
                         "lengths": lengths}))?;
        peers.push(peer);
    }
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
    // Twice before it counts: the pool and both sides' caches know every size then.
    take_turns(2, &mut sides)?;
    take_turns(rounds, &mut sides)
}

fn config() -> RecurrentConfig {
    let attention = RecurrentAttention { score: Score::Additive, width: D, hardness: Hardness::Soft };
    RecurrentConfig {
        d_model: D,
        d_encoder: D,
        encoder_layers: 2,
        decoder_layers: 1,
        attention: Some(attention),
        ..RecurrentConfig::base(VOCABULARY)
    }
}

fn batch() -> Result<Batch> {
    let side = |operation: u64, pair: usize, length: usize| -> Vec<u32> {
        let stream = Stream::new(7, pair as u64, operation);
        (0..length as u32).map(|i| 3 + stream.bits(i) % (VOCABULARY as u32 - 3)).collect()
    };
    // A target's length counts the marker of its beginning, or of its end.
    let pair = |(i, [source, target]): (usize, [usize; 2])| (side(0, i, source), side(1, i, target - 1));
    let pairs: Vec<_> = realistic_lengths(PAIRS).into_iter().enumerate().map(pair).collect();
    Ok(Batch::new(&pairs, 1, 2)?)
}
