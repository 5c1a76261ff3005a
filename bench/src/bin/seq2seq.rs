//! One training step (forward, backward, Adam) of a recurrent encoder-decoder with additive attention, ours
//! against PyTorch's, in alternating turns: `cargo xtask bench seq2seq [ROUNDS]`.
//!
//! The encoder has two layers of bidirectional LSTM, the decoder one layer of LSTM; d 512, 8000 subwords,
//! dropout 0.2, label smoothing 0.1. One batch of 64 pairs of all lengths.

use anyhow::Result;
use heedful::data::batch::Batch;
use heedful::layers::AttentionScore;
use heedful::models::recurrent::{AttentionOrder, Hardness, RecurrentAttention, RecurrentConfig, Seq2Seq};
use heedful_bench::{TrainingRace, race_training, realistic_lengths};
use heedful_tensor::random::Stream;
use serde_json::json;

const D: usize = 512;
const VOCABULARY: usize = 8000;
const PAIRS: u32 = 64;

fn main() -> Result<()> {
    let batch = batch()?;
    let peer = json!({"d": D, "vocabulary": VOCABULARY, "lengths": realistic_lengths(PAIRS)});
    let race = TrainingRace {
        name: "seq2seq",
        batch: &batch,
        tokens: batch.target_tokens(),
        peer,
        gpu_modes: "bf16 eager,bf16 graph,bf16 compiled,f32 eager,f32 graph",
    };
    race_training(&race, || Ok(Seq2Seq::new(config(), 1)?))
}

fn config() -> RecurrentConfig {
    let attention = RecurrentAttention {
        score: AttentionScore::Additive,
        width: D,
        hardness: Hardness::Soft,
        order: AttentionOrder::Before,
    };
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
    // A target's length includes `<bos>`, or `<eos>`.
    let pair = |(i, [source, target]): (usize, [usize; 2])| (side(0, i, source), side(1, i, target - 1));
    let pairs: Vec<_> = realistic_lengths(PAIRS).into_iter().enumerate().map(pair).collect();
    Ok(Batch::new(&pairs, 1, 2)?)
}
