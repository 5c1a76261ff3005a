//! Parameter names and counts, and errors. `tests/convolution` compares values with PyTorch's.

use super::*;
use crate::layers::Positions;

#[test]
fn parameters_have_the_names_of_the_file_format() {
    let names = |balance| {
        let config = ConvolutionalConfig { balance, ..ConvolutionalConfig::tiny(30) };
        let model = Convolutional::new(config, 1).expect("a good configuration");
        model.params.iter().map(|param| param.name().to_owned()).collect::<Vec<_>>()
    };
    let all = names(Balance::Norm);
    for name in [
        "embedding.weight",
        "encoder.0.convolution.weight",
        "encoder.1.convolution.bias",
        "encoder.1.norm.gamma",
        "decoder.0.convolution.weight",
        "decoder.0.cross_attention.query.weight",
        "decoder.1.cross_attention.output.bias",
        "decoder.1.norm.beta",
    ] {
        assert!(all.iter().any(|known| known == name), "{name} is not among {all:?}");
    }
    assert!(names(Balance::Scale).iter().all(|name| !name.contains("norm")));
}

#[test]
fn the_parameter_count_follows_the_formula() {
    let config = ConvolutionalConfig { decoder_taps: 2, ..ConvolutionalConfig::tiny(30) };
    let (d, taps) = (64, 3);
    let encoder = 2 * (taps * d * 2 * d + 2 * d);
    let decoder = 2 * (2 * d * 2 * d + 2 * d + 2 * (d * d + d));
    let model = Convolutional::new(config, 1).expect("a good configuration");
    assert_eq!(model.params.count(), 30 * d + encoder + decoder);
}

#[test]
fn unknown_tokens_and_long_sentences_are_errors() {
    let positions = Positions::Learned { max_length: 3 };
    let model = Convolutional::new(ConvolutionalConfig { positions, ..ConvolutionalConfig::tiny(30) }, 1)
        .expect("a good configuration");
    let check = |source: Vec<u32>, target: Vec<u32>| {
        let batch = Batch::new(&[(vec![3], vec![4]), (source, target)], 1, 2).expect("a good batch");
        model.check(&batch).map_err(|error| error.to_string())
    };
    assert_eq!(check(vec![29], vec![5]), Ok(()));
    let unknown = check(vec![30], vec![5]).expect_err("30 is unknown");
    assert!(unknown.starts_with("source sentence 1 has token 30"), "{unknown}");
    let long = check(vec![3], vec![5, 6, 7]).expect_err("with <bos> that is four tokens");
    assert!(long.starts_with("target sentence 1 has 4 tokens"), "{long}");
}
