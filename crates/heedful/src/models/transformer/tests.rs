//! Parameter names and counts, and errors. `tests/golden.rs` compares values with PyTorch's.

use super::*;
use crate::layers::{Norm, Positions, Tying};

fn names(config: TransformerConfig) -> Vec<String> {
    let model = Transformer::new(config, 1).expect("a good configuration");
    model.params().iter().map(|param| param.name().to_owned()).collect()
}

#[test]
fn parameters_have_the_names_of_the_file_format() {
    let all = names(TransformerConfig { norm: Norm::Pre, ..TransformerConfig::tiny(30) });
    for name in [
        "embedding.weight",
        "encoder.0.self_attention.qkv.weight",
        "encoder.0.self_attention.output.bias",
        "encoder.0.self_attention_norm.gamma",
        "encoder.0.feed_forward.inner.weight",
        "encoder.0.feed_forward_norm.beta",
        "encoder.norm.gamma",
        "decoder.0.self_attention.qkv.bias",
        "decoder.0.cross_attention.query.weight",
        "decoder.0.cross_attention.key_value.weight",
        "decoder.0.cross_attention.output.weight",
        "decoder.0.cross_attention_norm.gamma",
        "decoder.0.feed_forward.outer.bias",
        "decoder.norm.beta",
    ] {
        assert!(all.iter().any(|known| known == name), "{name} is not among {all:?}");
    }
}

#[test]
fn tied_parameters_have_the_first_name() {
    let tables = |tying| {
        let positions = Positions::Learned { max_length: 9 };
        let all = names(TransformerConfig { tying, positions, ..TransformerConfig::tiny(30) });
        all.into_iter().take_while(|name| !name.contains('0')).collect::<Vec<_>>().join(" ")
    };
    let positions = "source_position.weight target_position.weight";
    assert_eq!(tables(Tying::All), format!("embedding.weight {positions}"));
    assert_eq!(tables(Tying::SourceTarget), format!("source_embedding.weight output.weight {positions}"));
    assert_eq!(
        tables(Tying::TargetOutput),
        format!("source_embedding.weight target_embedding.weight {positions}")
    );
    assert_eq!(
        tables(Tying::None),
        format!("source_embedding.weight target_embedding.weight output.weight {positions}")
    );
}

#[test]
fn the_parameter_count_of_base_follows_the_formula() {
    let (d, ff, vocabulary) = (512, 2048, 1000);
    let attention = 4 * (d * d + d);
    let feed_forward = d * ff + ff + ff * d + d;
    let norm = 2 * d;
    let encoder = 6 * (attention + feed_forward + 2 * norm);
    let decoder = 6 * (2 * attention + feed_forward + 3 * norm);
    let model = Transformer::new(TransformerConfig::base(vocabulary), 1).expect("base can be built");
    assert_eq!(model.params().count(), vocabulary * d + encoder + decoder);
}

#[test]
fn key_and_value_widths_may_differ_from_the_model() {
    let config =
        TransformerConfig { key_width: Some(32), value_width: Some(48), ..TransformerConfig::tiny(30) };
    let model = Transformer::new(config, 1).expect("a good configuration");
    let shape = |name| model.params().get(name).expect("a known name").shape();
    assert_eq!(shape("encoder.0.self_attention.qkv.weight"), [64, 2 * 32 + 48]);
    assert_eq!(shape("decoder.0.cross_attention.query.weight"), [64, 32]);
    assert_eq!(shape("decoder.0.cross_attention.key_value.weight"), [64, 32 + 48]);
    assert_eq!(shape("decoder.0.cross_attention.output.weight"), [48, 64]);
}

#[test]
fn unknown_tokens_and_long_sentences_are_errors() {
    let positions = Positions::Learned { max_length: 3 };
    let model = Transformer::new(TransformerConfig { positions, ..TransformerConfig::tiny(30) }, 1)
        .expect("a good configuration");
    let check = |source: Vec<u32>, target: Vec<u32>| {
        let batch = Batch::new(&[(vec![3], vec![4]), (source, target)], 1, 2).expect("a good batch");
        model.check(&batch).map_err(|error| error.to_string())
    };
    assert_eq!(check(vec![29], vec![5]), Ok(()));
    let unknown = check(vec![30], vec![5]).expect_err("30 is unknown");
    assert!(
        unknown.starts_with("source sentence 1 has token 30, but the source vocabulary has 30"),
        "{unknown}"
    );
    let long = check(vec![3], vec![5, 6, 7]).expect_err("with <bos> that is four tokens");
    assert!(long.starts_with("target sentence 1 has 4 tokens"), "{long}");
}
