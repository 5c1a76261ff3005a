//! Options for models of other projects: embeddings, positions, special tokens, and SSRU decoders.

mod embedding;
mod special;
mod ssru;
#[path = "../support/stepped.rs"]
mod stepped;

use heedful::data::batch::Batch;
use heedful::layers::Pass;
use heedful::models::Model;
use heedful::models::transformer::{Transformer, TransformerConfig};
use heedful::tensor::random::Stream;
use heedful::tensor::{DType, Precision};
use heedful::train::{Schedule, StepTrainer, TrainerOptions};
use stepped::stepped;

const VOCABULARY: usize = 13;

fn build(config: &TransformerConfig) -> Transformer {
    Transformer::new(config.clone(), 3).expect("a good configuration")
}

/// Pairs of a sentence and itself.
fn copies(number: u64) -> Vec<(Vec<u32>, Vec<u32>)> {
    let stream = Stream::new(5, number, 0);
    let sentence = |i: u32| -> Vec<u32> {
        let length = 1 + stream.bits(i * 16) % 6;
        (0..length).map(|j| 4 + stream.bits(i * 16 + 1 + j) % (VOCABULARY as u32 - 4)).collect()
    };
    (0..32).map(|i| (sentence(i), sentence(i))).collect()
}

/// Trains on `batch(step)` and returns the first and the last loss.
fn losses<M: Model + 'static>(model: M, steps: u64, batch: impl Fn(u64) -> Batch) -> (f32, f32) {
    let schedule = Schedule::Cosine { peak: 3e-3, floor: 1e-4, warmup: 10, total: steps };
    let mut trainer = StepTrainer::new(model, TrainerOptions::new(DType::F32, 1, schedule));
    let first = trainer.step(&batch(0)).expect("a good step").loss;
    let last = (1..steps).map(|step| trainer.step(&batch(step)).expect("a good step").loss).last();
    (first, last.expect("many steps"))
}

/// Checks that decoding step by step gives the logits of the full pass.
fn check_steps(model: &Transformer) {
    let (source, target) = (vec![5, 6, 7], vec![4, 9, 12, 3]);
    let batch = Batch::new(&[(source.clone(), target)], 1, 2).expect("a good batch");
    let whole = model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec();
    let rows = stepped(model, &source, &batch.target_in, Precision::F32).concat();
    for (whole, row) in whole.iter().zip(&rows) {
        assert!((whole - row).abs() < 1e-4, "{whole} and {row}");
    }
    for compute in [Precision::Bf16, Precision::Int8] {
        let found = stepped(model, &source, &batch.target_in, compute).concat();
        let far = found.iter().zip(&rows).map(|(found, row)| (found - row).abs()).fold(0.0, f32::max);
        assert!(far < 0.5, "{compute}: {far}");
    }
}
