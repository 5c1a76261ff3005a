//! Two small models against PyTorch's `nn.Conv1d`, `glu` and `softmax`: logits, loss, every gradient, ten Adam steps;
//! f32, error ≤ 1e-4. `golden/convolution.py` wrote the files.

use std::path::Path;

use heedful::batch::Batch;
use heedful::convolution::{Balance, Convolutional, ConvolutionalConfig};
use heedful::layers::{Pass, Positions, Score};
use heedful::model::Model;
use heedful::tensor::{DType, Ragged, tape};
use heedful::train::{Schedule, Trainer, TrainerOptions};
use heedful::transformer::Tying;
use safetensors::SafeTensors;
use serde_json::Value;

use super::alone;
use super::support::{error, length, parameter_value};

const TOLERANCE: f64 = 1e-4;
/// Below this part of the largest gradient's length a gradient is rounding.
const FLOOR: f64 = 1e-6;

#[test]
fn both_forms_agree_with_pytorch() {
    let _alone = alone();
    for name in ["scale-tied", "norm-untied"] {
        let golden = Golden::read(name);
        let (model, batch) = (golden.model(), golden.batch());
        let logits = model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec();
        golden.compare("logits", &logits);

        let found = model.loss(&batch, &mut Pass::training(DType::F32, 1, 1));
        golden.compare("loss", &[found.loss.item()]);
        tape::backward(&found.loss);
        let expected = |name: &str| golden.numbers(&format!("grad.{name}"));
        let longest = model.params().iter().map(|p| length(&expected(p.name()))).fold(0.0, f64::max);
        for param in model.params().iter().filter(|p| length(&expected(p.name())) > FLOOR * longest) {
            golden.compare(&format!("grad.{}", param.name()), &param.gradient());
        }

        let number = |key: &str| golden.config[key].as_f64().expect("a number");
        let schedule = Schedule::Noam {
            d_model: model.config().d_model,
            warmup: number("warmup") as u64,
            factor: number("rate_factor"),
        };
        let mut trainer = Trainer::new(golden.model(), TrainerOptions::new(DType::F32, 1, schedule));
        let losses: Vec<f32> = (0..10).map(|_| trainer.step(&batch).expect("a good batch").loss).collect();
        golden.compare("losses", &losses);
    }
}

struct Golden {
    name: &'static str,
    bytes: Vec<u8>,
    config: Value,
}

impl Golden {
    fn read(name: &'static str) -> Golden {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/convolution");
        let bytes = std::fs::read(folder.join(format!("{name}.safetensors")))
            .expect("goldens are missing: run `cargo xtask golden`");
        let (_, metadata) = SafeTensors::read_metadata(&bytes).expect("safetensors");
        let entries = metadata.metadata().as_ref().expect("metadata");
        let config = serde_json::from_str(&entries["config"]).expect("the configuration as JSON");
        Golden { name, bytes, config }
    }

    fn compare(&self, what: &str, ours: &[f32]) {
        let error = error(ours, &self.numbers(what));
        println!("{:12} {what:44} {error:.1e}", self.name);
        assert!(error <= TOLERANCE, "{}: {what} is off by {error:.2e}", self.name);
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

    fn model(&self) -> Convolutional {
        let size = |key: &str| self.config[key].as_u64().expect("a size") as usize;
        let word = |key: &str| self.config[key].as_str().expect("a word");
        let config = ConvolutionalConfig {
            d_model: size("d_model"),
            encoder_layers: size("layers"),
            decoder_layers: size("layers"),
            encoder_taps: size("encoder_taps"),
            decoder_taps: size("decoder_taps"),
            balance: if word("balance") == "norm" { Balance::Norm } else { Balance::Scale },
            positions: match word("positions") {
                "learned" => Positions::Learned { max_length: size("max_len") },
                _ => Positions::Sinusoidal,
            },
            tying: if word("tying") == "tied" { Tying::All } else { Tying::None },
            score: if word("score") == "dot" { Score::Dot } else { Score::ScaledDot },
            dropout: 0.0,
            label_smoothing: self.config["label_smoothing"].as_f64().expect("a number") as f32,
            ..ConvolutionalConfig::tiny(size("vocabulary"))
        };
        let width = config.d_model;
        let model = Convolutional::new(config, 1).expect("a good configuration");
        for param in model.params().iter() {
            param.set(&parameter_value(param.name(), 0, param.shape(), width));
        }
        model
    }
}
