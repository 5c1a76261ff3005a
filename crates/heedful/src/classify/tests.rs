use heedful_tensor::{DType, tape};

use super::*;
use crate::batch::Form;
use crate::convolution::ConvolutionalConfig;
use crate::layers::{Kind, Positions};
use crate::recurrent::RecurrentConfig;
use crate::train::{Schedule, Trainer, TrainerOptions};
use crate::transformer::{StackConfig, TransformerConfig};

fn model(pooling: Pooling, positions: Positions) -> EncoderClassifier {
    let stack = StackConfig { positions, ..StackConfig::of_encoder(&TransformerConfig::tiny(30)) };
    classifier(EncoderConfig::Transformer(stack), pooling)
}

/// One of every kind.
fn encoders() -> [EncoderConfig; 3] {
    let (recurrent, convolutional) = (RecurrentConfig::tiny(30), ConvolutionalConfig::tiny(30));
    [
        EncoderConfig::Transformer(StackConfig::of_encoder(&TransformerConfig::tiny(30))),
        EncoderConfig::Recurrent(RecurrentReaderConfig {
            vocabulary: 30,
            dropout: 0.1,
            stack: recurrent.encoder(),
        }),
        EncoderConfig::Convolutional(ConvolutionalReaderConfig {
            vocabulary: 30,
            positions: Positions::Sinusoidal,
            dropout: 0.1,
            shape: convolutional.encoder(),
        }),
    ]
}

fn classifier(encoder: EncoderConfig, pooling: Pooling) -> EncoderClassifier {
    let config = ClassifierConfig { labels: 3, pooling, dropout: 0.1, label_smoothing: 0.0, encoder };
    EncoderClassifier::new(config, 3).expect("a good configuration")
}

fn batch(examples: &[(&[u32], u32)]) -> Batch {
    let examples: Vec<_> = examples.iter().map(|(text, label)| (text.to_vec(), vec![*label])).collect();
    Batch::of(Form::Labels, &examples, [1, 2]).expect("a good batch")
}

#[test]
fn a_text_has_the_same_scores_alone_and_in_a_batch() {
    let both = |encoder: EncoderConfig| {
        [Pooling::Attention, Pooling::First].map(|pooling| (encoder.clone(), pooling))
    };
    for (encoder, pooling) in encoders().into_iter().flat_map(both) {
        let model = classifier(encoder, pooling);
        for compute in [DType::F32, DType::Bf16] {
            let scores = |batch: &Batch| {
                let mut pass = Pass::inference(compute).recording();
                let scores = model.label_scores(&batch.source, &batch.source_sequences, &mut pass);
                (scores.expect("labels").to_vec(), pass.take_attention())
            };
            let (alone, maps) = scores(&batch(&[(&[5, 6, 7], 0)]));
            let (together, _) = scores(&batch(&[(&[9], 1), (&[5, 6, 7], 0), (&[4, 4], 2)]));
            assert_eq!(alone, together[3..6]);
            let pooled = maps.iter().find(|map| map.place.kind == Kind::Pooling);
            assert_eq!(pooled.is_some(), pooling == Pooling::Attention);
            if let Some(map) = pooled {
                let sum: f32 = map.weights[0][0].iter().sum();
                assert!(map.weights[0][0].len() == 3 && (sum - 1.0).abs() < 1e-3, "{sum}");
            }
        }
    }
}

#[test]
fn every_parameter_has_a_gradient_and_labels_are_learned() {
    let poolings = [Pooling::Attention, Pooling::First].into_iter();
    let models = poolings
        .map(|pooling| model(pooling, Positions::Learned { max_length: 6 }))
        .chain(encoders().map(|encoder| classifier(encoder, Pooling::Attention)));
    for model in models {
        let summary = model.config().summary();
        // The label is which of 5, 6, 7 the text has.
        let batch = batch(&[(&[5, 9, 10], 0), (&[11, 6], 1), (&[7, 12, 9, 10], 2), (&[12, 5], 0), (&[7], 2)]);
        let found = model.loss(&batch, &mut Pass::training(DType::F32, 1, 1));
        assert_eq!((found.tokens, model.predictions(&batch)), (5, 5));
        tape::backward(&found.loss);
        for param in model.params().iter() {
            assert!(param.gradient().iter().any(|&g| g != 0.0), "{summary}: {}", param.name());
        }
        let schedule = Schedule::Constant { rate: 3e-3 };
        let mut trainer = Trainer::new(model, TrainerOptions::new(DType::F32, 1, schedule));
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
    assert!(model.check(&batch(&[(&[5, 6, 7], 2)])).is_err(), "a token is put before it");
}
