use heedful_tensor::ops::{EmbeddingOptions, Positions as OpPositions};
use heedful_tensor::random::Dropout;
use heedful_tensor::{DType, Init, tape};

use super::*;
use crate::data::batch::BatchLayout;
use crate::layers::{AttentionRole, Positions};
use crate::models::convolution::{ConvolutionalConfig, ConvolutionalTextEncoderConfig};
use crate::models::recurrent::{RecurrentConfig, RecurrentEncoderConfig, RecurrentStackConfig};
use crate::models::transformer::{StackConfig, TransformerConfig};
use crate::train::{Schedule, StepTrainer, TrainerOptions};

fn model(pooling: Pooling, positions: Positions) -> EncoderClassifier {
    let stack = StackConfig { positions, ..TransformerConfig::tiny(30).encoder() };
    classifier(EncoderConfig::Transformer(stack), pooling)
}

/// One encoder of every family.
fn encoders() -> [EncoderConfig; 3] {
    let (recurrent, convolutional) = (RecurrentConfig::tiny(30), ConvolutionalConfig::tiny(30));
    [
        EncoderConfig::Transformer(TransformerConfig::tiny(30).encoder()),
        EncoderConfig::Recurrent(RecurrentEncoderConfig {
            vocabulary: 30,
            dropout: 0.1,
            stack: recurrent.encoder(),
        }),
        EncoderConfig::Convolutional(ConvolutionalTextEncoderConfig {
            vocabulary: 30,
            positions: Positions::Sinusoidal,
            dropout: 0.1,
            stack: convolutional.encoder(),
        }),
    ]
}

fn classifier(encoder: EncoderConfig, pooling: Pooling) -> EncoderClassifier {
    EncoderClassifier::new(config(encoder, pooling, AttentionScore::Additive), 3)
        .expect("a good configuration")
}

fn config(encoder: EncoderConfig, pooling: Pooling, pooling_score: AttentionScore) -> ClassifierConfig {
    ClassifierConfig {
        labels: 3,
        pooling,
        pooling_score,
        pooler: false,
        label_bias: false,
        dropout: 0.1,
        label_smoothing: 0.0,
        encoder,
    }
}

const POOLINGS: [Pooling; 5] =
    [Pooling::Attention, Pooling::First, Pooling::Last, Pooling::Mean, Pooling::Max];

const SCORES: [AttentionScore; 4] =
    [AttentionScore::Additive, AttentionScore::Dot, AttentionScore::General, AttentionScore::ScaledDot];

fn batch(examples: &[(&[u32], u32)]) -> Batch {
    let examples: Vec<_> = examples.iter().map(|(text, label)| (text.to_vec(), vec![*label])).collect();
    Batch::of(BatchLayout::Labels, &examples, [1, 2]).expect("a good batch")
}

#[test]
fn a_text_has_the_same_scores_alone_and_in_a_batch() {
    let both = |encoder: EncoderConfig| POOLINGS.map(|pooling| (encoder.clone(), pooling));
    for (encoder, pooling) in encoders().into_iter().flat_map(both) {
        let model = classifier(encoder, pooling);
        for compute in [DType::F32, DType::Bf16] {
            let scores = |batch: &Batch| {
                let mut pass = Pass::inference(compute).recording();
                let scores = model.label_scores(&batch.source, &batch.source_sequences, &mut pass);
                (scores.to_vec(), pass.take_attention().expect("few weights"))
            };
            let (alone, maps) = scores(&batch(&[(&[5, 6, 7], 0)]));
            let (together, _) = scores(&batch(&[(&[9], 1), (&[5, 6, 7], 0), (&[4, 4], 2)]));
            assert_eq!(alone, together[3..6]);
            let pooled = maps.iter().find(|map| map.site.role == AttentionRole::Pooling);
            assert_eq!(pooled.is_some(), pooling == Pooling::Attention);
            if let Some(map) = pooled {
                let sum: f32 = map.weights[0][0].iter().sum();
                assert!(map.weights[0][0].len() == 3 && (sum - 1.0).abs() < 1e-3, "{sum}");
            }
        }
    }
}

#[test]
fn recording_first_queries_takes_memory_linear_in_the_text_length() {
    let tokens: Vec<u32> = (0..700).map(|i| 4 + i % 26).collect();
    let text = batch(&[(&tokens, 0), (&[5, 6, 7], 1)]);
    for pooling in POOLINGS {
        let model = model(pooling, Positions::Sinusoidal);
        let maps = |mut pass: Pass| {
            model.label_scores(&text.source, &text.source_sequences, &mut pass);
            pass.take_attention().expect("few weights")
        };
        let all = maps(Pass::inference(DType::F32).recording());
        let first = maps(Pass::inference(DType::F32).recording_first_queries());
        assert_eq!(all.len(), first.len());
        for (all, first) in all.iter().zip(&first) {
            assert!(first.queries.lengths().all(|queries| queries == 1));
            for (sequence, heads) in first.weights.iter().enumerate() {
                for (head, weights) in heads.iter().enumerate() {
                    let keys = first.keys.length(sequence);
                    assert_eq!(*weights, all.weights[sequence][head][..keys], "{}", first.site.layer_name());
                }
            }
        }
    }
}

#[test]
fn every_parameter_has_a_gradient_and_labels_are_learned() {
    let models = POOLINGS
        .into_iter()
        .map(|pooling| model(pooling, Positions::Learned { max_length: 6 }))
        // First pooling is left out for a forward network: its first state does not depend on the recurrent
        // weight.
        .chain(
            [Pooling::Last, Pooling::Mean, Pooling::Max]
                .map(|pooling| classifier(encoders()[1].clone(), pooling)),
        )
        .chain(encoders().map(|encoder| classifier(encoder, Pooling::Attention)))
        .chain(SCORES.map(|score| {
            let config = config(encoders()[1].clone(), Pooling::Attention, score);
            EncoderClassifier::new(config, 3).expect("a good configuration")
        }));
    for model in models {
        let summary = model.config().summary();
        // The label depends on which of the tokens 5, 6 and 7 the text contains.
        let batch = batch(&[(&[5, 9, 10], 0), (&[11, 6], 1), (&[7, 12, 9, 10], 2), (&[12, 5], 0), (&[7], 2)]);
        let loss = model.loss(&batch, &mut Pass::training(DType::F32, 1, 1));
        assert_eq!((loss.tokens, model.predictions(&batch)), (5, 5));
        tape::backward(&loss.loss);
        for param in model.params().iter() {
            assert!(param.gradient().iter().any(|&g| g != 0.0), "{summary}: {}", param.name());
        }
        let schedule = Schedule::Constant { rate: 3e-3 };
        let mut trainer = StepTrainer::new(model, TrainerOptions::new(DType::F32, 1, schedule));
        let last = (0..60).map(|_| trainer.step(&batch).expect("a good batch")).last().expect("60 steps");
        assert_eq!(last.correct, 5, "{summary}: {last:?}");
    }
}

#[test]
fn unknown_labels_and_long_texts_are_errors() {
    let model = model(Pooling::First, Positions::Learned { max_length: 3 });
    assert!(model.check(&batch(&[(&[5, 6], 2)])).is_ok());
    let label = model.check(&batch(&[(&[5], 0), (&[5], 3)])).expect_err("three labels").to_string();
    assert!(label.starts_with("label sentence 1 has token 3"), "{label}");
    assert!(model.check(&batch(&[(&[5, 6, 7], 2)])).is_err(), "with `<bos>` it has 4 tokens");
}

/// A bidirectional encoder with three components for each direction.
fn two_directions() -> Box<dyn Encode> {
    let stack = RecurrentStackConfig { width: 3, ..RecurrentConfig::tiny(30).encoder() };
    let config = RecurrentEncoderConfig { vocabulary: 30, dropout: 0.0, stack };
    EncoderConfig::Recurrent(config).build(&Params::new(1)).expect("a good configuration")
}

#[test]
fn every_pooling_and_every_score_matches_its_formula_and_its_gradient() {
    let (width, sequences) = (6, Ragged::from_lengths([3, 1, 4]));
    let scores = SCORES.map(|score| (Pooling::Attention, score));
    let others = [Pooling::First, Pooling::Last, Pooling::Mean, Pooling::Max]
        .map(|pooling| (pooling, AttentionScore::Additive));
    let encoder = two_directions();
    for (pooling, score) in scores.into_iter().chain(others) {
        let params = Params::new(5);
        let states = params.add("states.weight", 8, width, Init::Normal(1.0));
        let pool = Pool::new(&params, pooling, score, width);
        let pooled = |pass: &mut Pass| {
            let rows: Vec<u32> = (0..8).collect();
            let options = EmbeddingOptions {
                scale: 1.0,
                positions: OpPositions::None,
                first_position: 0,
                dropout: Dropout::NONE,
                compute: pass.compute(),
            };
            let states = ops::embedding(&rows, &sequences, &states, options);
            pool.forward(&states, &sequences, &*encoder, pass)
        };
        // A weighted sum, so that the gradients of the result's elements differ.
        let loss = |pass: &mut Pass| {
            let weights: Vec<f32> = (0..3 * width).map(|i| (i as f32 * 0.7).sin()).collect();
            ops::sum(&ops::multiply(&pooled(pass), &Tensor::from_f32(3, width, &weights)))
        };
        tape::backward(&loss(&mut Pass::training(DType::F32, 1, 1)));
        let value = || tape::no_grad(|| loss(&mut Pass::inference(DType::F32)).item());
        let actual = tape::no_grad(|| pooled(&mut Pass::inference(DType::F32)).to_vec());
        for (actual, expected) in actual.iter().zip(by_formula(pooling, score, &params, &sequences)) {
            assert!((actual - expected).abs() < 1e-5, "{pooling:?}, {score:?}: {actual} and {expected}");
        }
        for param in params.iter() {
            let (before, gradient) = (param.to_vec(), param.gradient());
            for i in 0..before.len() {
                let at = |step: f32| {
                    let mut moved = before.clone();
                    moved[i] += step;
                    param.set(&moved);
                    f64::from(value())
                };
                let slope = (at(1e-2) - at(-1e-2)) / 2e-2;
                let difference = (slope - f64::from(gradient[i])).abs();
                assert!(
                    difference < 2e-3,
                    "{pooling:?}, {score:?}, {} {i}: {slope} and {}",
                    param.name(),
                    gradient[i]
                );
            }
            param.set(&before);
        }
    }
}

/// The pooled vectors of the states in `params`, flattened.
fn by_formula(pooling: Pooling, score: AttentionScore, params: &Params, sequences: &Ragged) -> Vec<f32> {
    let states = params.get("states.weight").expect("the states").to_vec();
    let at = |row: usize, column: usize| states[row * 6 + column];
    if pooling == Pooling::Attention {
        return by_attention(score, params, sequences);
    }
    let each = |range: std::ops::Range<usize>, column: usize| match pooling {
        Pooling::First => at(range.start, column),
        Pooling::Last => at(if column < 3 { range.end - 1 } else { range.start }, column),
        Pooling::Mean => range.clone().map(|row| at(row, column)).sum::<f32>() / range.len() as f32,
        _ => range.map(|row| at(row, column)).fold(f32::NEG_INFINITY, f32::max),
    };
    sequences
        .ranges()
        .flat_map(|range| (0..6).map(move |column| (range.clone(), column)))
        .map(|(range, column)| each(range, column))
        .collect()
}

fn by_attention(score: AttentionScore, params: &Params, sequences: &Ragged) -> Vec<f32> {
    let values = |name: &str| params.get(name).map(|param| param.to_vec()).unwrap_or_default();
    let (states, query) = (values("states.weight"), values("pooling.query.weight"));
    let (weight, bias) = (values("pooling.key.weight"), values("pooling.key.bias"));
    let d = query.len();
    let state = |j: usize| &states[j * d..(j + 1) * d];
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let projected = |j: usize| -> Vec<f32> {
        (0..d).map(|column| (0..d).map(|row| state(j)[row] * weight[row * d + column]).sum()).collect()
    };
    let score_of = |j: usize| match score {
        AttentionScore::Additive => {
            let inner = projected(j).iter().zip(&bias).map(|(x, b)| (x + b).tanh()).collect::<Vec<_>>();
            dot(&query, &inner)
        }
        AttentionScore::General => dot(&query, &projected(j)),
        AttentionScore::Dot => dot(&query, state(j)),
        AttentionScore::ScaledDot => dot(&query, state(j)) / (d as f32).sqrt(),
    };
    let mut pooled = Vec::new();
    for range in sequences.ranges() {
        let exponentials: Vec<f32> = range.clone().map(|j| score_of(j).exp()).collect();
        let total: f32 = exponentials.iter().sum();
        pooled.extend((0..d).map(|column| {
            range.clone().zip(&exponentials).map(|(j, exp)| exp / total * state(j)[column]).sum::<f32>()
        }));
    }
    pooled
}

#[test]
fn a_configuration_names_the_score_of_its_pooling() {
    let config = config(encoders()[1].clone(), Pooling::Attention, AttentionScore::Additive);
    let mut json = serde_json::to_value(&config).expect("JSON");
    assert_eq!(json["pooling_score"], "additive");
    assert_eq!(serde_json::from_value::<ClassifierConfig>(json.clone()).expect("as it was written"), config);
    json.as_object_mut().expect("an object").remove("pooling_score").expect("it is written");
    let error = serde_json::from_value::<ClassifierConfig>(json).expect_err("a field is missing");
    assert!(error.to_string().contains("pooling_score"), "{error}");
}
