//! Whole encoder-decoders, with and without attention, against PyTorch step by step: logits, loss, every
//! gradient; f32, error ≤ 1e-4. `golden/seq2seq.py` writes the files.

use heedful::layers::Pass;
use heedful::models::Model;
use heedful::models::recurrent::{RecurrentConfig, Seq2Seq};
use heedful::tensor::{DType, tape};

use crate::exclusive;
use crate::golden_file::GoldenFile;
use crate::support::parameter_value;

#[test]
fn models_without_attention_agree_with_pytorch() {
    check("seq2seq-lstm-plain");
    check("seq2seq-gru-plain");
}

#[test]
fn models_with_every_kind_of_score_agree_with_pytorch() {
    check("seq2seq-gru-additive");
    check("seq2seq-lstm-scaled-dot");
    check("seq2seq-gru-general-norm");
}

#[test]
fn models_that_attend_after_the_step_agree_with_pytorch() {
    check("seq2seq-gru-after-additive");
    check("seq2seq-lstm-after-general-norm");
}

#[test]
fn models_with_a_convolutional_encoder_agree_with_pytorch() {
    check("seq2seq-lstm-convolution");
}

#[test]
fn models_with_input_feeding_agree_with_pytorch() {
    check("seq2seq-gru-feeding-dot");
}

fn check(name: &str) {
    let _lock = exclusive();
    let golden = GoldenFile::read("recurrent", name);
    let config: RecurrentConfig = serde_json::from_value(golden.config.clone()).expect("our configuration");
    let width = config.d_model;
    let model = Seq2Seq::new(config, 1).expect("a good configuration");
    for param in model.params().iter() {
        param.set(&parameter_value(param.name(), 0, param.shape(), width));
    }
    let batch = golden.batch();
    golden.compare("logits", &model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec());
    let found = model.loss(&batch, &mut Pass::training(DType::F32, 1, 1));
    golden.compare("loss", &[found.loss.item()]);
    tape::backward(&found.loss);
    for param in model.params().iter() {
        golden.compare(&format!("grad.{}", param.name()), &param.gradient());
    }
}
