//! Eight small encoder-decoders against PyTorch: logits, loss, every gradient, ten Adam steps.
//!
//! ```text
//! f32    error ≤ 1e-4
//! bf16   logits ≤ 2e-2; each gradient at most 1.2 times as far from f32 as PyTorch's own bf16 is
//! ```
//!
//! bf16 distances are geometric means over many random draws of the parameters: in a single draw, a few ReLUs
//! that rounding flips in one implementation only decide which looks better.
//!
//! `golden/generate.py` writes the files; both sides generate parameters from their names.
//! `cargo test --test golden -- --nocapture` prints the largest errors of each case.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heedful::data::batch::Batch;
use heedful::layers::Tying;
use heedful::layers::{Norm, Pass, Positions};
use heedful::models::Model;
use heedful::models::transformer::{DropoutRates, Transformer, TransformerConfig};
use heedful::tensor::ops::Activation;
use heedful::tensor::{DType, Param, Ragged, tape};
use heedful::train::{Schedule, StepTrainer, TrainerOptions};
use safetensors::SafeTensors;
use serde_json::Value;
use support::{distance, error, length, parameter_value};

const F32_TOLERANCE: f64 = 1e-4;
const BF16_LOGITS_TOLERANCE: f64 = 2e-2;
const BF16_GRADIENT_FACTOR: f64 = 1.2;
/// A gradient whose norm is below this share of the largest one is only rounding error.
const FLOOR: f64 = 1e-6;

#[test]
fn f32_agrees_with_pytorch() {
    for_each_case(|golden| {
        let model = golden.model();
        let batch = golden.batch();
        let logits = model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec();
        let logits_error = error(&logits, &golden.numbers("logits"));

        let found = model.loss(&batch, &mut Pass::training(DType::F32, 1, 1));
        let loss_error = error(&[found.loss.item()], &golden.numbers("loss"));
        tape::backward(&found.loss);
        let (worst, worst_name) = golden.worst_gradient(&model, error);

        let losses_error = error(&golden.ten_losses(DType::F32), &golden.numbers("losses"));
        let name = &golden.name;
        println!(
            "{name:28} f32   logits {logits_error:.1e}  loss {loss_error:.1e}  gradients {worst:.1e} \
             ({worst_name})  ten losses {losses_error:.1e}"
        );
        for (quantity, error) in
            [("logits", logits_error), ("loss", loss_error), (&worst_name, worst), ("losses", losses_error)]
        {
            assert!(error <= F32_TOLERANCE, "{name}: {quantity} is off by {error:.2e}");
        }
    });
}

#[test]
fn bf16_is_as_close_to_f32_as_pytorchs() {
    for_each_case(|golden| {
        let draws = golden.numbers("bf16_logits_distance").len() as u32;
        let mut distances = BTreeMap::<String, Vec<f32>>::new();
        for draw in 0..draws {
            for (name, distance) in golden.bf16_distances(draw) {
                distances.entry(name).or_default().push(distance as f32);
            }
        }
        let (mut worst, mut worst_name) = (0.0, String::new());
        for (name, ours) in distances {
            let theirs = geometric_mean(&golden.numbers(&name));
            if name == "bf16_logits_distance" {
                let worst = ours.iter().copied().fold(0.0, f32::max);
                println!(
                    "{:28} bf16  logits at most {worst:.1e} (typical in PyTorch {theirs:.1e})",
                    golden.name
                );
                assert!(
                    f64::from(worst) <= BF16_LOGITS_TOLERANCE,
                    "{}: logits are off by {worst:.2e}",
                    golden.name
                );
                continue;
            }
            let ours = geometric_mean(&ours);
            if ours / theirs > worst {
                (worst, worst_name) = (ours / theirs, format!("{name}: {ours:.1e}, PyTorch {theirs:.1e}"));
            }
        }
        println!(
            "{:28} bf16  gradients at most {worst:.2} of PyTorch's distance ({worst_name})",
            golden.name
        );
        assert!(worst <= BF16_GRADIENT_FACTOR, "{}: {worst_name}", golden.name);
    });
}

struct Golden {
    name: String,
    bytes: Vec<u8>,
    config: Value,
}

fn for_each_case(test: impl Fn(&Golden)) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let entries = folder.read_dir().expect("the folder of goldens");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
    paths.sort();
    assert_eq!(paths.len(), 8, "goldens are missing: run `cargo xtask golden`");
    for path in paths {
        test(&Golden::read(&path));
    }
}

impl Golden {
    fn read(path: &Path) -> Golden {
        let bytes = std::fs::read(path).expect("a readable golden");
        let (_, metadata) = SafeTensors::read_metadata(&bytes).expect("safetensors");
        let entries = metadata.metadata().as_ref().expect("metadata");
        let config = serde_json::from_str(&entries["config"]).expect("the configuration as JSON");
        let name = path.file_stem().expect("a file name").to_string_lossy().into_owned();
        Golden { name, bytes, config }
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

    fn batch(&self) -> Batch {
        let sequences = |name| Ragged::from_lengths(self.tokens(name).into_iter().map(|n| n as usize));
        Batch {
            source: self.tokens("source"),
            source_sequences: sequences("source_lengths"),
            target_in: self.tokens("target_in"),
            target_out: self.tokens("target_out"),
            target_sequences: sequences("target_lengths"),
        }
    }

    fn model(&self) -> Transformer {
        self.model_of_draw(0)
    }

    fn model_of_draw(&self, draw: u32) -> Transformer {
        let size = |key: &str| self.config[key].as_u64().expect("a size") as usize;
        let number = |key: &str| self.config[key].as_f64().expect("a number");
        let word = |key: &str| self.config[key].as_str().expect("a word");
        let config = TransformerConfig {
            d_model: size("d_model"),
            d_ff: size("d_ff"),
            heads: size("n_heads"),
            encoder_layers: size("encoder_layers"),
            decoder_layers: size("decoder_layers"),
            norm: if word("norm") == "pre" { Norm::Pre } else { Norm::Post },
            norm_epsilon: number("norm_eps") as f32,
            activation: if word("activation") == "gelu" { Activation::Gelu } else { Activation::Relu },
            positions: match word("positions") {
                "learned" => Positions::Learned { max_length: size("max_len") },
                _ => Positions::Sinusoidal,
            },
            tying: if word("tying") == "tied" { Tying::All } else { Tying::None },
            dropout: DropoutRates::default(),
            output_bias: false,
            label_smoothing: number("label_smoothing") as f32,
            ..TransformerConfig::base(size("vocabulary"))
        };
        let width = config.d_model;
        let model = Transformer::new(config, 1).expect("a good configuration");
        for param in model.params().iter() {
            param.set(&parameter_value(param.name(), draw, param.shape(), width));
        }
        model
    }

    fn ten_losses(&self, compute: DType) -> Vec<f32> {
        let model = self.model();
        let schedule = Schedule::Noam {
            d_model: model.config().d_model,
            warmup: self.config["warmup"].as_u64().expect("a number of steps"),
            factor: self.config["rate_factor"].as_f64().expect("a factor"),
        };
        let mut trainer = StepTrainer::new(model, TrainerOptions::new(compute, 1, schedule));
        let batch = self.batch();
        (0..10).map(|_| trainer.step(&batch).expect("a good batch").loss).collect()
    }

    /// Distances from bf16 to f32 for one draw of the parameters: logits and every gradient, by their golden
    /// names.
    fn bf16_distances(&self, draw: u32) -> Vec<(String, f64)> {
        let (model, batch) = (self.model_of_draw(draw), self.batch());
        let compute = |compute: DType| {
            let logits = model.logits(&batch, &mut Pass::inference(compute)).to_vec();
            model.params().clear_gradients();
            tape::backward(&model.loss(&batch, &mut Pass::training(compute, 1, 1)).loss);
            let named = |param: Param| (format!("bf16_distance.{}", param.name()), param.gradient());
            let mut found: Vec<_> = model.params().iter().map(named).collect();
            found.push(("bf16_logits_distance".to_owned(), logits));
            found
        };
        // heedful's f32 equals PyTorch's up to 1e-6, as the other test shows.
        let exact = compute(DType::F32);
        let rounded = compute(DType::Bf16);
        let pairs = rounded.into_iter().zip(exact);
        pairs.map(|((name, rounded), (_, exact))| (name, distance(&rounded, &exact))).collect()
    }

    fn worst_gradient(&self, model: &Transformer, error: impl Fn(&[f32], &[f32]) -> f64) -> (f64, String) {
        let golden = |name: &str| self.numbers(&format!("grad.{name}"));
        let longest = model.params().iter().map(|p| length(&golden(p.name()))).fold(0.0, f64::max);
        let mut worst = (0.0, String::new());
        for param in model.params().iter() {
            let expected = golden(param.name());
            assert_eq!(expected.len(), param.gradient().len(), "{}", param.name());
            let error = error(&param.gradient(), &expected);
            if length(&expected) > FLOOR * longest && (error > worst.0 || error.is_nan()) {
                worst = (error, param.name().to_owned());
            }
        }
        worst
    }
}

fn geometric_mean(values: &[f32]) -> f64 {
    (values.iter().map(|&x| f64::from(x).ln()).sum::<f64>() / values.len() as f64).exp()
}
