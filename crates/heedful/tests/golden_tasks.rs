//! A language model, a masked language model and a classifier against PyTorch in f32: logits, loss, every
//! gradient.
//!
//! `golden/tasks/generate.py` writes the files; both sides generate parameters from their names.

mod support;

use std::path::Path;

use heedful::data::batch::{Batch, BatchLayout};
use heedful::layers::{AttentionScore, Norm, Pass};
use heedful::models::transformer::{StackConfig, TransformerConfig};
use heedful::models::{EncoderConfig, Label, Model};
use heedful::tasks::classify::{ClassifierConfig, EncoderClassifier, Pooling};
use heedful::tasks::language::{LanguageConfig, LanguageModel, TextShape};
use heedful::tasks::masked::{MaskedConfig, MaskedModel, MaskedText};
use heedful::tensor::ops::{Activation, CrossEntropy};
use heedful::tensor::{DType, Params, Ragged, tape};
use safetensors::SafeTensors;
use support::{error, length, parameter_value};

const TOLERANCE: f64 = 1e-4;
/// A gradient whose norm is below this share of the largest one is only rounding error.
const FLOOR: f64 = 1e-6;

fn stack(norm: Norm) -> StackConfig {
    StackConfig {
        d_model: 32,
        d_ff: 48,
        heads: 4,
        layers: 2,
        norm,
        activation: Activation::Gelu,
        ..TransformerConfig::tiny(61).encoder()
    }
}

#[test]
fn a_language_model_agrees_with_pytorch() {
    let golden = Golden::read("language");
    let config = LanguageConfig {
        stack: stack(Norm::Pre).into(),
        text: TextShape::Lines,
        block: None,
        label_smoothing: 0.0,
        output_bias: false,
    };
    let model = LanguageModel::new(config, 1).expect("a good configuration");
    set(model.params());
    let batch = golden.batch(BatchLayout::Lines);
    assert_eq!(batch.target_out, golden.tokens("labels"));
    let logits = model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec();
    let found = model.loss(&batch, &mut Pass::training(DType::F32, 1, 1));
    golden.compare(&logits, &found, model.params());
}

#[test]
fn a_masked_language_model_agrees_with_pytorch() {
    let golden = Golden::read("masked");
    let config = MaskedConfig { stack: stack(Norm::Post), label_smoothing: 0.0, output_bias: false };
    let model = MaskedModel::new(config, 1).expect("a good configuration");
    set(model.params());
    let masked = MaskedText {
        text: golden.tokens("text"),
        rows: golden.tokens("rows").into_iter().map(|row| row as usize).collect(),
        targets: golden.tokens("labels"),
    };
    let sequences = golden.sequences();
    let mut pass = Pass::inference(DType::F32);
    let logits = model.token_scores(&masked.text, &sequences, &masked.rows, &mut pass).to_vec();
    let found = model.loss_of(&masked, &sequences, &mut Pass::training(DType::F32, 1, 1));
    golden.compare(&logits, &found, model.params());
}

#[test]
fn a_classifier_with_attention_pooling_agrees_with_pytorch() {
    let golden = Golden::read("classifier");
    let config = ClassifierConfig {
        labels: 5,
        pooling: Pooling::Attention,
        pooling_score: AttentionScore::Additive,
        pooler: false,
        label_bias: false,
        dropout: 0.0,
        label_smoothing: 0.0,
        encoder: EncoderConfig::Transformer(stack(Norm::Post)),
    };
    let model = EncoderClassifier::new(config, 1).expect("a good configuration");
    set(model.params());
    let batch = golden.batch(BatchLayout::Labels);
    let mut pass = Pass::inference(DType::F32);
    let logits = model.label_scores(&batch.source, &batch.source_sequences, &mut pass);
    let found = model.loss(&batch, &mut Pass::training(DType::F32, 1, 1));
    golden.compare(&logits.to_vec(), &found, model.params());
}

fn set(params: &Params) {
    for param in params.iter() {
        param.set(&parameter_value(param.name(), 0, param.shape(), 32));
    }
}

struct Golden {
    name: String,
    bytes: Vec<u8>,
}

impl Golden {
    fn read(name: &str) -> Golden {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/tasks");
        let bytes = std::fs::read(folder.join(format!("{name}.safetensors"))).expect("a golden");
        Golden { name: name.to_owned(), bytes }
    }

    fn raw(&self, name: &str) -> Vec<[u8; 4]> {
        let file = SafeTensors::deserialize(&self.bytes).expect("safetensors");
        let tensor = file.tensor(name).unwrap_or_else(|_| panic!("{}: no {name}", self.name));
        tensor.data().chunks_exact(4).map(|bytes| bytes.try_into().expect("four bytes")).collect()
    }

    fn numbers(&self, name: &str) -> Vec<f32> {
        self.raw(name).into_iter().map(f32::from_le_bytes).collect()
    }

    fn tokens(&self, name: &str) -> Vec<u32> {
        self.raw(name).into_iter().map(u32::from_le_bytes).collect()
    }

    fn sequences(&self) -> Ragged {
        Ragged::from_lengths(self.tokens("lengths").into_iter().map(|length| length as usize))
    }

    fn batch(&self, layout: BatchLayout) -> Batch {
        let (text, labels) = (self.tokens("text"), self.tokens("labels"));
        let texts = self.sequences().ranges().map(|range| text[range].to_vec()).collect::<Vec<_>>();
        let example = |(index, text): (usize, Vec<u32>)| match layout {
            BatchLayout::Labels => (text, vec![labels[index]]),
            _ => (Vec::new(), text),
        };
        let examples: Vec<_> = texts.into_iter().enumerate().map(example).collect();
        Batch::of(layout, &examples, [1, 2]).expect("a good batch")
    }

    fn compare(&self, logits: &[f32], found: &CrossEntropy, params: &Params) {
        let logits = error(logits, &self.numbers("logits"));
        let loss = error(&[found.loss.item()], &self.numbers("loss"));
        tape::backward(&found.loss);
        let golden = |name: &str| self.numbers(&format!("grad.{name}"));
        let longest = params.iter().map(|param| length(&golden(param.name()))).fold(0.0, f64::max);
        let mut worst = (0.0, String::new());
        for param in params.iter() {
            let expected = golden(param.name());
            let error = error(&param.gradient(), &expected);
            if length(&expected) > FLOOR * longest && (error > worst.0 || error.is_nan()) {
                worst = (error, param.name().to_owned());
            }
        }
        println!(
            "{:12} logits {logits:.1e}  loss {loss:.1e}  gradients {:.1e} ({})",
            self.name, worst.0, worst.1
        );
        for (quantity, error) in [("logits", logits), ("loss", loss), (worst.1.as_str(), worst.0)] {
            assert!(error <= TOLERANCE, "{}: {quantity} is off by {error:.2e}", self.name);
        }
    }
}
