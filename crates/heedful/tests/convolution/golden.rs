//! Four small models against PyTorch's `nn.Conv1d`, `glu`, `relu` and `softmax`: logits, loss, every
//! gradient, ten Adam steps; f32, error ≤ 1e-4. `golden/convolution.py` writes the files.

use heedful::layers::Tying;
use heedful::layers::{AttentionScore, Pass, Positions};
use heedful::models::Model;
use heedful::models::convolution::{Balance, ConvolutionKind, Convolutional, ConvolutionalConfig};
use heedful::tensor::{DType, tape};
use heedful::train::{Schedule, StepTrainer, TrainerOptions};

use crate::exclusive;
use crate::golden_file::GoldenFile;
use crate::support::{length, parameter_value};

/// A gradient whose norm is below this share of the largest one is only rounding error.
const FLOOR: f64 = 1e-6;

#[test]
fn all_variants_agree_with_pytorch() {
    let _lock = exclusive();
    for name in ["scale-tied", "norm-untied", "dilated-gated", "dilated-relu"] {
        let golden = GoldenFile::read("convolution", name);
        let (model, batch) = (build(&golden), golden.batch());
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
        let mut trainer = StepTrainer::new(build(&golden), TrainerOptions::new(DType::F32, 1, schedule));
        let losses: Vec<f32> = (0..10).map(|_| trainer.step(&batch).expect("a good batch").loss).collect();
        golden.compare("losses", &losses);
    }
}

fn build(golden: &GoldenFile) -> Convolutional {
    let size = |key: &str| golden.config[key].as_u64().expect("a size") as usize;
    let word = |key: &str| golden.config[key].as_str().expect("a word");
    let config = ConvolutionalConfig {
        d_model: size("d_model"),
        encoder_layers: size("layers"),
        decoder_layers: size("layers"),
        encoder_taps: size("encoder_taps"),
        decoder_taps: size("decoder_taps"),
        dilation: golden.config["dilation"].as_u64().map_or(1, |dilation| dilation as usize),
        kind: match golden.config["kind"].as_str() {
            Some("relu") => ConvolutionKind::Relu,
            _ => ConvolutionKind::Gated,
        },
        balance: if word("balance") == "norm" { Balance::Norm } else { Balance::Scale },
        positions: match word("positions") {
            "learned" => Positions::Learned { max_length: size("max_len") },
            _ => Positions::Sinusoidal,
        },
        tying: if word("tying") == "tied" { Tying::All } else { Tying::None },
        score: if word("score") == "dot" { AttentionScore::Dot } else { AttentionScore::ScaledDot },
        dropout: 0.0,
        output_bias: false,
        label_smoothing: golden.config["label_smoothing"].as_f64().expect("a number") as f32,
        ..ConvolutionalConfig::tiny(size("vocabulary"))
    };
    let width = config.d_model;
    let model = Convolutional::new(config, 1).expect("a good configuration");
    for param in model.params().iter() {
        param.set(&parameter_value(param.name(), 0, param.shape(), width));
    }
    model
}
