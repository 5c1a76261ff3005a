//! A tiny model learns to copy, decodes copies, and returns its attention weights.

use heedful::data::batch::Batch;
use heedful::decode::{GreedyOptions, greedy};
use heedful::layers::{AttentionRole, Norm, Pass};
use heedful::models::transformer::{Transformer, TransformerConfig};
use heedful::tensor::DType;
use heedful::tensor::random::Stream;
use heedful::train::{Schedule, StepTrainer, TrainerOptions};

const VOCABULARY: usize = 13;
const BOS: u32 = 1;
const EOS: u32 = 2;

#[test]
fn a_tiny_model_learns_to_copy() {
    for (norm, compute) in [(Norm::Post, DType::F32), (Norm::Pre, DType::Bf16)] {
        let config = TransformerConfig { norm, ..TransformerConfig::tiny(VOCABULARY) };
        let model = Transformer::new(config, 1).expect("a good configuration");
        let schedule = Schedule::Cosine { peak: 3e-3, floor: 1e-4, warmup: 30, total: 400 };
        let mut trainer = StepTrainer::new(model, TrainerOptions::new(compute, 1, schedule));
        let first = trainer.step(&copies(0)).expect("a good batch").loss;
        let last = (1..400).map(|step| trainer.step(&copies(step)).expect("a good batch").loss).last();
        let last = last.expect("many steps");
        assert!(first > 2.0 && last < 0.1, "{norm:?} {compute}: the loss went from {first} to {last}");

        let sources = vec![vec![3, 4, 5], vec![12, 3, 12, 7, 5], vec![9]];
        let options = GreedyOptions { beyond_source: 5, compute: compute.into() };
        assert_eq!(greedy(trainer.model(), &sources, options).expect("good sources"), sources);
    }
}

#[test]
fn recording_returns_every_attention_weight() {
    let model = Transformer::new(TransformerConfig::tiny(VOCABULARY), 1).expect("a good configuration");
    let mut trainer = StepTrainer::new(model, TrainerOptions::new(DType::F32, 1, Schedule::noam(64, 100)));
    let batch = copies(0);

    let mut training = trainer.pass().recording();
    let mut inference = Pass::inference(DType::F32).recording();
    trainer.model().logits(&batch, &mut inference);
    trainer.step_in(&batch, &mut training).expect("a good batch");
    for mut pass in [training, inference] {
        let maps = pass.take_attention().expect("few weights");
        let sites: Vec<_> =
            maps.iter().map(|map| (map.site.layer_name().to_string(), map.site.role)).collect();
        let expected = [
            ("encoder.0.self", AttentionRole::EncoderSelf),
            ("decoder.0.self", AttentionRole::DecoderSelf),
            ("decoder.0.cross", AttentionRole::Cross),
        ];
        assert_eq!(sites, expected.map(|(name, kind)| (name.to_owned(), kind)));
        for map in &maps {
            assert_eq!((map.weights.len(), map.heads()), (batch.sentences(), 2));
            for (sequence, heads) in map.weights.iter().enumerate() {
                let (n, m) = (map.queries.length(sequence), map.keys.length(sequence));
                for head in heads {
                    assert_eq!(head.len(), n * m);
                    assert!(head.chunks_exact(m).all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-4));
                }
            }
        }
        let causal = &maps[1];
        let future = |(i, &weight): (usize, &f32)| {
            i % causal.keys.length(0) <= i / causal.keys.length(0) || weight == 0.0
        };
        assert!(causal.weights[0][0].iter().enumerate().all(future), "the decoder attends to the future");
    }
}

/// Thirty-two random sentences of one to six words, to be copied.
fn copies(step: u64) -> Batch {
    let stream = Stream::new(9, step, 0);
    let sentence = |i: u32| {
        let length = 1 + stream.bits(i * 16) % 6;
        (0..length).map(|j| 3 + stream.bits(i * 16 + 1 + j) % (VOCABULARY as u32 - 3)).collect::<Vec<u32>>()
    };
    let pairs: Vec<_> = (0..32).map(|i| (sentence(i), sentence(i))).collect();
    Batch::new(&pairs, BOS, EOS).expect("a good batch")
}
