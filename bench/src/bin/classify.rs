//! One training step (forward, backward, Adam) of a text classifier, ours against PyTorch's, turn by turn:
//! `cargo xtask bench classify [ROUNDS]`.
//!
//! Two layers of LSTM read in both directions, attention makes one vector of what they say; d 256, 8000 subwords, dropout
//! 0.3, four labels. One batch of 64 texts, log-normal lengths of mean 40: those of news.

use std::time::Instant;

use anyhow::{Result, bail};
use heedful::batch::{Batch, Form};
use heedful::classify::{ClassifierConfig, EncoderClassifier, EncoderConfig, Pooling, RecurrentReaderConfig};
use heedful::layers::Score;
use heedful::recurrent::RecurrentConfig;
use heedful::train::{Schedule, Trainer, TrainerOptions};
use heedful_bench::{Allocator, Cell, Paired, Peer, Turn, report, take_turns, text_lengths};
use heedful_tensor::DType;
use heedful_tensor::cpu::{isa, threads};
use heedful_tensor::random::Stream;
use serde_json::json;

const D: usize = 256;
const VOCABULARY: usize = 8000;
const TEXTS: u32 = 64;
const MEAN_LENGTH: f32 = 40.0;
const LABELS: usize = 4;
const DROPOUT: f32 = 0.3;
const DEFAULT_ROUNDS: usize = 7;
const DTYPES: [DType; 2] = [DType::Bf16, DType::F32];

fn main() -> Result<()> {
    let rounds = match std::env::args().nth(1).map(|rounds| rounds.parse()) {
        None => DEFAULT_ROUNDS,
        Some(Ok(rounds)) if rounds > 0 => rounds,
        Some(_) => bail!("usage: cargo xtask bench classify [ROUNDS]"),
    };
    println!("{} threads, {}, {rounds} rounds", threads::thread_count(), isa::current());
    let batch = batch()?;
    let seconds = measure(&batch, rounds)?;
    let tokens = batch.source.len() as f64;
    let mut cells = Vec::new();
    for (name, ours, peer) in [("bf16", 0, 0), ("f32", 1, 1), ("bf16 vs f32", 0, 1)] {
        let paired = Paired { ours: seconds[ours].clone(), peer: seconds[DTYPES.len() + peer].clone() };
        let cell = Cell::rate("classify", name, "tokens/s", tokens, &paired);
        eprintln!("{name}: {:.2}", cell.ratio());
        cells.push(cell);
    }
    report("classify", &cells)
}

/// Seconds of our types, then of the peer's, all in the same rounds, so that every pair of them can be compared.
fn measure(batch: &Batch, rounds: usize) -> Result<Vec<Vec<f64>>> {
    let mut trainers = Vec::new();
    let mut peers = Vec::new();
    for dtype in DTYPES {
        let options = TrainerOptions::new(dtype, 1, Schedule::Constant { rate: 1e-4 });
        trainers.push(Trainer::new(EncoderClassifier::new(config(), 1)?, options));
        let mut peer = Peer::start("classify", Allocator::AsInstalled)?;
        peer.ask(&json!({"op": "build", "config": config(), "dtype": dtype.to_string(),
                         "lengths": text_lengths(TEXTS, MEAN_LENGTH)}))?;
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

fn config() -> ClassifierConfig {
    let recurrent = RecurrentConfig {
        d_model: D,
        d_encoder: D,
        encoder_layers: 2,
        dropout: DROPOUT,
        ..RecurrentConfig::base(VOCABULARY)
    };
    let reader =
        RecurrentReaderConfig { vocabulary: VOCABULARY, dropout: DROPOUT, stack: recurrent.encoder() };
    ClassifierConfig {
        labels: LABELS,
        pooling: Pooling::Attention,
        pooling_score: Score::Additive,
        dropout: DROPOUT,
        label_smoothing: 0.0,
        encoder: EncoderConfig::Recurrent(reader),
    }
}

fn batch() -> Result<Batch> {
    let text = |(i, length): (usize, usize)| -> (Vec<u32>, Vec<u32>) {
        let stream = Stream::new(7, i as u64, 0);
        let tokens = (0..length as u32).map(|i| 4 + stream.bits(i) % (VOCABULARY as u32 - 4)).collect();
        (tokens, vec![i as u32 % LABELS as u32])
    };
    let texts: Vec<_> = text_lengths(TEXTS, MEAN_LENGTH).into_iter().enumerate().map(text).collect();
    Ok(Batch::of(Form::Labels, &texts, [1, 2])?)
}
