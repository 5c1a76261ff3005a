//! A tiny model learns to copy and to reverse sentences and then decodes them.

use heedful::data::batch::Batch;
use heedful::decode::{GreedyOptions, greedy};
use heedful::models::convolution::{Balance, ConvolutionKind, Convolutional, ConvolutionalConfig};
use heedful::tensor::DType;
use heedful::tensor::random::Stream;
use heedful::train::{Schedule, StepTrainer, TrainerOptions};

use super::exclusive;

const VOCABULARY: usize = 13;
const BOS: u32 = 1;
const EOS: u32 = 2;
const STEPS: u64 = 400;

#[test]
fn a_tiny_model_learns_to_copy_and_to_reverse() {
    let _lock = exclusive();
    let copied = |source: &[u32]| source.to_vec();
    let reversed = |source: &[u32]| source.iter().rev().copied().collect::<Vec<u32>>();
    let tiny = ConvolutionalConfig::tiny(VOCABULARY);
    learns(&tiny, DType::F32, reversed);
    learns(&ConvolutionalConfig { balance: Balance::Norm, ..tiny.clone() }, DType::Bf16, copied);
    learns(&ConvolutionalConfig { dilation: 2, ..tiny.clone() }, DType::F32, copied);
    let relu = ConvolutionalConfig { kind: ConvolutionKind::Relu, dilation: 3, ..tiny };
    learns(&relu, DType::F32, copied);
}

fn learns(config: &ConvolutionalConfig, compute: DType, target_of: impl Fn(&[u32]) -> Vec<u32>) {
    let name = config.summary();
    let model = Convolutional::new(config.clone(), 1).expect("a good configuration");
    let schedule = Schedule::Cosine { peak: 3e-3, floor: 1e-4, warmup: 30, total: STEPS };
    let mut trainer = StepTrainer::new(model, TrainerOptions::new(compute, 1, schedule));
    let mut losses =
        (0..STEPS).map(|step| trainer.step(&batch(step, &target_of)).expect("a good batch").loss);
    let first = losses.next().expect("a step");
    let last = losses.last().expect("many steps");
    println!("{name} {compute}: the loss went from {first} to {last}");
    assert!(first > 2.0 && last < 0.1, "{name} {compute}: the loss went from {first} to {last}");

    let sources = vec![vec![3, 4, 5], vec![12, 3, 12, 7, 5], vec![9]];
    let options = GreedyOptions { beyond_source: 5, compute: compute.into() };
    let expected: Vec<Vec<u32>> = sources.iter().map(|source| target_of(source)).collect();
    assert_eq!(greedy(trainer.model(), &sources, options).expect("good sources"), expected);
}

/// Thirty-two random sentences of one to six words.
fn batch(step: u64, target_of: impl Fn(&[u32]) -> Vec<u32>) -> Batch {
    let stream = Stream::new(9, step, 0);
    let sentence = |i: u32| {
        let length = 1 + stream.bits(i * 16) % 6;
        (0..length).map(|j| 3 + stream.bits(i * 16 + 1 + j) % (VOCABULARY as u32 - 3)).collect::<Vec<u32>>()
    };
    let pairs: Vec<_> = (0..32).map(sentence).map(|source| (source.clone(), target_of(&source))).collect();
    Batch::new(&pairs, BOS, EOS).expect("a good batch")
}
