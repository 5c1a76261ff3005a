//! One training step (forward, backward, Adam) of a text classifier, ours against PyTorch's, in alternating
//! turns: `cargo xtask bench classify [ROUNDS]`.
//!
//! Two layers of bidirectional LSTM with attention pooling; d 256, 8000 subwords, dropout 0.3, four labels.
//! One batch of 64 texts, log-normal lengths of mean 40, as in news.

use anyhow::Result;
use heedful::data::batch::{Batch, BatchLayout};
use heedful::layers::AttentionScore;
use heedful::models::EncoderConfig;
use heedful::models::recurrent::{RecurrentConfig, RecurrentEncoderConfig};
use heedful::tasks::classify::{ClassifierConfig, EncoderClassifier, Pooling};
use heedful_bench::{TrainingRace, race_training, text_lengths};
use heedful_tensor::random::Stream;
use serde_json::json;

const D: usize = 256;
const VOCABULARY: usize = 8000;
const TEXTS: u32 = 64;
const MEAN_LENGTH: f32 = 40.0;
const LABELS: usize = 4;
const DROPOUT: f32 = 0.3;

fn main() -> Result<()> {
    let batch = batch()?;
    let peer = json!({"config": config(), "lengths": text_lengths(TEXTS, MEAN_LENGTH)});
    let race = TrainingRace {
        name: "classify",
        batch: &batch,
        tokens: batch.source.len(),
        peer,
        gpu_modes: "bf16 eager,bf16 graph,bf16 padded,f16 padded,f32 eager,f32 graph",
    };
    race_training(&race, || Ok(EncoderClassifier::new(config(), 1)?))
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
        RecurrentEncoderConfig { vocabulary: VOCABULARY, dropout: DROPOUT, stack: recurrent.encoder() };
    ClassifierConfig {
        labels: LABELS,
        pooling: Pooling::Attention,
        pooling_score: AttentionScore::Additive,
        pooler: false,
        label_bias: false,
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
    Ok(Batch::of(BatchLayout::Labels, &texts, [1, 2])?)
}
