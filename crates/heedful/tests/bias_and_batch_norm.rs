//! The output bias of every family, and batch norm: their results, training, saving and restoring.

#[path = "support/stepped.rs"]
mod stepped;

use heedful::data::batch::Batch;
use heedful::decode::{GreedyOptions, greedy};
use heedful::layers::{NormKind, Pass};
use heedful::models::convolution::ConvolutionalConfig;
use heedful::models::recurrent::RecurrentConfig;
use heedful::models::transformer::{Transformer, TransformerConfig};
use heedful::models::{EncoderDecoderConfig, Model};
use heedful::tensor::random::Stream;
use heedful::tensor::{DType, Precision, tape};
use heedful::train::{Schedule, StepTrainer, TrainError, TrainerOptions};
use stepped::stepped;

const VOCABULARY: usize = 13;

fn families(output_bias: bool) -> [EncoderDecoderConfig; 3] {
    [
        EncoderDecoderConfig::Transformer(TransformerConfig {
            output_bias,
            ..TransformerConfig::tiny(VOCABULARY)
        }),
        EncoderDecoderConfig::Recurrent(RecurrentConfig { output_bias, ..RecurrentConfig::tiny(VOCABULARY) }),
        EncoderDecoderConfig::Convolutional(ConvolutionalConfig {
            output_bias,
            ..ConvolutionalConfig::tiny(VOCABULARY)
        }),
    ]
}

#[test]
fn an_output_bias_is_added_to_every_logit_in_search_and_in_the_loss() {
    let biases: Vec<f32> = (0..VOCABULARY).map(|i| (i as f32 * 1.3).sin()).collect();
    for (plain, biased) in families(false).into_iter().zip(families(true)) {
        let name = plain.summary();
        let (plain, biased) = (plain.build(4).expect("a model"), biased.build(4).expect("a model"));
        biased.params().get("output.bias").expect("a bias").set(&biases);
        let (source, target) = (vec![5, 6, 7], vec![4, 9, 12, 3]);
        let target_in = [vec![1], target.clone()].concat();
        for compute in [Precision::F32, Precision::Bf16, Precision::Int8] {
            let rows = stepped(&plain, &source, &target_in, compute);
            for (without, with) in rows.iter().zip(stepped(&biased, &source, &target_in, compute)) {
                for ((without, bias), with) in without.iter().zip(&biases).zip(with) {
                    assert!(
                        (without + bias - with).abs() < 1e-5,
                        "{name} {compute}: {without} {bias} {with}"
                    );
                }
            }
        }
        // −Σ log softmax(logits + b), in f64 over the scores of the steps.
        let rows = stepped(&plain, &source, &target_in, Precision::F32);
        let labels = [target.clone(), vec![2]].concat();
        let expected: f64 = rows.iter().zip(&labels).fold(0.0, |sum, (row, &label)| {
            let scores: Vec<f64> = row.iter().zip(&biases).map(|(x, b)| f64::from(x + b)).collect();
            sum + scores.iter().map(|score| score.exp()).sum::<f64>().ln() - scores[label as usize]
        });
        let batch = Batch::new(&[(source, target)], 1, 2).expect("a good batch");
        let found = biased.loss(&batch, &mut Pass::inference(DType::F32)).negative_log_likelihood();
        assert!((found - expected).abs() < 1e-3, "{name}: {found} and {expected}");
    }
}

#[test]
fn an_output_bias_learns_how_frequent_tokens_are() {
    // Always token 7, whatever the source: the bias alone can learn that.
    for config in families(true) {
        let model = config.build(1).expect("a model");
        let pairs: Vec<(Vec<u32>, Vec<u32>)> = (3..12).map(|token| (vec![token], vec![7, 7, 7])).collect();
        let batch = Batch::new(&pairs, 1, 2).expect("a good batch");
        let found = model.loss(&batch, &mut Pass::training(DType::F32, 1, 1));
        tape::backward(&found.loss);
        let bias = model.params().get("output.bias").expect("a bias");
        let gradient = bias.gradient();
        assert!(gradient.iter().sum::<f32>().abs() < 1e-5, "probabilities and targets both sum to 1");
        assert!(gradient[7] < 0.0 && gradient[5] > 0.0, "{gradient:?}");
        model.params().clear_gradients();
        let options = TrainerOptions::new(DType::F32, 1, Schedule::Constant { rate: 1e-2 });
        let mut trainer = StepTrainer::new(model, options);
        for _ in 0..30 {
            trainer.step(&batch).expect("a good step");
        }
        let bias = bias.to_vec();
        let others = (0..VOCABULARY).filter(|token| ![2, 7].contains(token));
        assert!(others.into_iter().all(|token| bias[token] < bias[7]), "{bias:?}");
    }
}

#[test]
fn configurations_omit_fields_with_default_values() {
    for (plain, biased) in families(false).into_iter().zip(families(true)) {
        let text = serde_json::to_string(&plain).expect("JSON");
        assert!(!text.contains("output_bias") && !text.contains("norm_kind"), "{text}");
        assert_eq!(
            serde_json::from_str::<EncoderDecoderConfig>(&text).expect("the plain configuration"),
            plain
        );
        let text = serde_json::to_string(&biased).expect("JSON");
        assert_eq!(serde_json::from_str::<EncoderDecoderConfig>(&text).expect("as written"), biased);
    }
}

fn batch_normed(seed: u64) -> Transformer {
    let config = TransformerConfig { norm_kind: NormKind::Batch, ..TransformerConfig::tiny(VOCABULARY) };
    Transformer::new(config, seed).expect("a good configuration")
}

fn copies(number: u64) -> Batch {
    let stream = Stream::new(5, number, 0);
    let sentence = |i: u32| -> Vec<u32> {
        let length = 1 + stream.bits(i * 16) % 6;
        (0..length).map(|j| 3 + stream.bits(i * 16 + 1 + j) % (VOCABULARY as u32 - 3)).collect()
    };
    let pairs: Vec<_> = (0..32).map(|i| (sentence(i), sentence(i))).collect();
    Batch::new(&pairs, 1, 2).expect("a good batch")
}

fn trainer(seed: u64) -> StepTrainer<Transformer> {
    let schedule = Schedule::Cosine { peak: 3e-3, floor: 1e-4, warmup: 30, total: 400 };
    let mut options = TrainerOptions::new(DType::F32, 1, schedule);
    options.average_decay = Some(0.9);
    StepTrainer::new(batch_normed(seed), options)
}

#[test]
fn a_model_with_batch_norm_learns_to_copy_and_decodes_with_its_running_statistics() {
    let mut trainer = trainer(1);
    let first = trainer.step(&copies(0)).expect("a good step").loss;
    let last = (1..400).map(|step| trainer.step(&copies(step)).expect("a good step").loss).last();
    let last = last.expect("many steps");
    assert!(first > 2.0 && last < 0.2, "the loss went from {first} to {last}");
    let held_out = trainer.model().loss(&copies(1000), &mut Pass::inference(DType::F32));
    let right = held_out.correct() as f64 / held_out.tokens as f64;
    assert!(right > 0.95, "{right}");
    let sources = vec![vec![3, 4, 5], vec![12, 3, 12, 7, 5], vec![9]];
    for compute in [Precision::F32, Precision::Int8] {
        let found = greedy(trainer.model(), &sources, GreedyOptions { beyond_source: 5, compute });
        let found = found.expect("good sources");
        let right = found.iter().zip(&sources).filter(|(found, source)| found == source).count();
        assert!(right >= 2, "{compute}: {found:?}");
    }
}

#[test]
fn running_statistics_are_restored_bit_for_bit_and_not_trained() {
    let mut whole = trainer(1);
    for step in 0..20 {
        whole.step_over(&[copies(step), copies(step + 50)]).expect("a good step");
    }
    let mut first = trainer(1);
    for step in 0..10 {
        first.step_over(&[copies(step), copies(step + 50)]).expect("a good step");
    }
    let mut second = trainer(2);
    second.restore(&first.state()).expect("the same model");
    for step in 10..20 {
        second.step_over(&[copies(step), copies(step + 50)]).expect("a good step");
    }
    assert_eq!(whole.state(), second.state());
    let variance = "decoder.0.feed_forward_norm.variance";
    let (parameters, moments) = (whole.state().parameters, whole.state().square);
    assert!(parameters.get(variance).expect("saved").iter().all(|&value| value > 0.0 && value != 1.0));
    assert!(moments.get(variance).expect("saved").iter().all(|&value| value == 0.0));
}

#[test]
fn a_rejected_step_leaves_the_running_statistics_unchanged() {
    let mut trainer = trainer(1);
    trainer.step(&copies(0)).expect("a good step");
    let embedding = trainer.model().params().get("embedding.weight").expect("a parameter");
    let values = embedding.to_vec();
    let mean = trainer.model().params().get("encoder.0.self_attention_norm.mean").expect("a statistic");
    let before = mean.to_vec();
    embedding.set(&vec![f32::NAN; values.len()]);
    assert!(matches!(trainer.step(&copies(1)), Err(TrainError::Diverged { .. })));
    assert_eq!(mean.to_vec(), before);
    embedding.set(&values);
    trainer.step(&copies(1)).expect("a good step");
    assert_ne!(mean.to_vec(), before);
}
