//! Embeddings without √d, with a norm, and with sines before cosines, against an f64 reference.

use heedful::layers::{Halves, Pass, Positions};
use heedful::models::Model;
use heedful::models::transformer::{StackConfig, StackMask, TextStack, TransformerConfig};
use heedful::tasks::masked::{MaskedConfig, MaskedModel};
use heedful::tensor::{DType, Params, Ragged};

use crate::{VOCABULARY, build, check_steps, copies, losses};

/// Position `pos`, dimension `column` of `d`, as in the source code of the three projects.
fn wave(halves: Halves, position: usize, column: usize, d: usize) -> f64 {
    match halves {
        // transformers: table[:, : d/2] = sin(angles[:, 0::2]), table[:, d/2 :] = cos(angles[:, 1::2]), where
        // angles[pos, j] = pos / 10000^(2 (j // 2) / d)
        Halves::MarianMt => {
            let is_sine = column < d / 2;
            let j = if is_sine { 2 * column } else { 2 * (column - d / 2) + 1 };
            let angle = position as f64 / 10_000_f64.powf(2.0 * (j / 2) as f64 / d as f64);
            if is_sine { angle.sin() } else { angle.cos() }
        }
        // increment = log 10000 / (d/2 − 1), value = pos · exp(−i · increment)
        Halves::Marian | Halves::OpenNmt => {
            let position = position + usize::from(halves == Halves::OpenNmt);
            let increment = 10_000_f64.ln() / (d as f64 / 2.0 - 1.0);
            let i = column % (d / 2);
            let value = position as f64 * (-(i as f64) * increment).exp();
            if column < d / 2 { value.sin() } else { value.cos() }
        }
    }
}

fn normed(row: &[f64], gamma: &[f32], beta: &[f32], epsilon: f64) -> Vec<f64> {
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64;
    let unit = row.iter().map(|x| (x - mean) / (variance + epsilon).sqrt());
    unit.zip(gamma.iter().zip(beta)).map(|(x, (g, b))| x * f64::from(*g) + f64::from(*b)).collect()
}

fn all(vocabulary: usize) -> Vec<TransformerConfig> {
    let positions = [
        Positions::Sinusoidal,
        Positions::Learned { max_length: 16 },
        Positions::Halves(Halves::MarianMt),
        Positions::Halves(Halves::Marian),
        Positions::Halves(Halves::OpenNmt),
    ];
    let config = |(positions, scale_embeddings, embedding_norm)| TransformerConfig {
        positions,
        scale_embeddings,
        embedding_norm,
        ..TransformerConfig::tiny(vocabulary)
    };
    let kinds = positions.into_iter().flat_map(|kind| [(kind, true, true), (kind, false, false)]);
    kinds.chain([(Positions::Sinusoidal, false, true)]).map(config).collect()
}

#[test]
fn embeddings_match_an_f64_reference() {
    let text = [4, 7, 7, 12, 0];
    for config in all(VOCABULARY) {
        // A stack whose single block adds nothing: its sublayers return 0 and pre-norm leaves the sum
        // unchanged.
        let stack = StackConfig { norm: heedful::layers::Norm::Pre, layers: 1, ..config.encoder() };
        let params = Params::new(4);
        let model = TextStack::new(&params, StackMask::Bidirectional, stack.clone()).expect("a stack");
        for param in params.iter() {
            if param.name().starts_with("encoder.0") {
                param.set(&vec![0.0; param.range().len()]);
            } else if param.name().contains("norm.") {
                let value = |i: usize| 1.0 + (i as f32 * 0.7).sin();
                param.set(&(0..param.range().len()).map(value).collect::<Vec<_>>());
            }
        }
        let get = |name: &str| params.get(name).expect("a parameter").to_vec();
        let (d, table) = (stack.d_model, get("embedding.weight"));
        let scale = if stack.scale_embeddings { (d as f64).sqrt() } else { 1.0 };
        let mut expected = Vec::new();
        for (position, &token) in [0, 1, 2, 0, 1].into_iter().zip(&text) {
            let position_value = |column| match stack.positions {
                Positions::Halves(halves) => wave(halves, position, column, d),
                Positions::Learned { .. } => f64::from(get("position.weight")[position * d + column]),
                _ => {
                    let angle = position as f64 / 10_000_f64.powf((column / 2 * 2) as f64 / d as f64);
                    if column.is_multiple_of(2) { angle.sin() } else { angle.cos() }
                }
            };
            let token = |column| f64::from(table[token as usize * d + column]);
            let mut row: Vec<f64> =
                (0..d).map(|column| scale * token(column) + position_value(column)).collect();
            let epsilon = f64::from(stack.norm_epsilon);
            if stack.embedding_norm {
                row = normed(&row, &get("embedding_norm.gamma"), &get("embedding_norm.beta"), epsilon);
            }
            expected.extend(normed(&row, &get("encoder.norm.gamma"), &get("encoder.norm.beta"), epsilon));
        }
        let sequences = Ragged::from_lengths([3, 2]);
        let found = model.forward(&text, &sequences, &mut Pass::inference(DType::F32)).to_vec();
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-4, "{found} and {expected}: {stack:?}");
        }
    }
}

#[test]
fn every_embedding_decodes_step_by_step_like_the_full_pass() {
    all(VOCABULARY).iter().for_each(|config| check_steps(&build(config)));
}

#[test]
fn models_with_other_embeddings_learn() {
    let batch = |step| heedful::data::batch::Batch::new(&copies(step), 1, 2).expect("a good batch");
    for config in all(VOCABULARY) {
        let model = build(&config);
        let (first, last) = losses(model, 60, batch);
        assert!(last < 0.8 * first, "the loss went from {first} to {last}: {config:?}");
    }
    let stack = StackConfig {
        scale_embeddings: false,
        embedding_norm: true,
        positions: Positions::Learned { max_length: 16 },
        ..TransformerConfig::tiny(VOCABULARY).encoder()
    };
    let model = MaskedModel::new(MaskedConfig { stack, label_smoothing: 0.0, output_bias: true }, 1);
    let texts = |step| {
        let texts: Vec<_> = copies(step).into_iter().map(|(text, _)| (text.repeat(2), vec![])).collect();
        let layout = heedful::data::batch::BatchLayout::Texts;
        heedful::data::batch::Batch::of(layout, &texts, [1, 2]).expect("a good batch")
    };
    let (first, last) = losses(model.expect("a model"), 150, texts);
    assert!(last < 0.9 * first, "the loss went from {first} to {last}");
}

#[test]
fn embedding_norms_have_names_and_gradients() {
    let config = TransformerConfig { embedding_norm: true, ..TransformerConfig::tiny(VOCABULARY) };
    let model = build(&config);
    let batch = heedful::data::batch::Batch::new(&copies(1), 1, 2).expect("a good batch");
    let found = model.loss(&batch, &mut Pass::training(DType::F32, 1, 1));
    heedful::tensor::tape::backward(&found.loss);
    for name in ["source_embedding_norm.gamma", "target_embedding_norm.beta", "embedding.weight"] {
        let param = model.params().get(name).expect("a parameter");
        assert!(param.gradient().iter().any(|&g| g != 0.0), "{name}");
    }
}

#[test]
fn default_settings_are_not_written_and_others_round_trip() {
    let plain = serde_json::to_string(&TransformerConfig::tiny(VOCABULARY)).expect("JSON");
    assert!(!plain.contains("scale_embeddings") && !plain.contains("embedding_norm"), "{plain}");
    for config in all(VOCABULARY) {
        let text = serde_json::to_string(&config).expect("JSON");
        assert_eq!(serde_json::from_str::<TransformerConfig>(&text).expect("as written"), config);
    }
    let config = TransformerConfig {
        positions: Positions::Halves(Halves::OpenNmt),
        ..TransformerConfig::tiny(VOCABULARY)
    };
    let text = serde_json::to_string(&config).expect("JSON");
    assert!(text.contains(r#""positions":{"halves":"opennmt"}"#), "{text}");
    let narrow = TransformerConfig { d_model: 2, heads: 1, ..config };
    let complaint = narrow.validate().expect_err("one wave has no last one").to_string();
    assert!(complaint.contains("at least 4, not 2"), "{complaint}");
}
