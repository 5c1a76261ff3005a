//! The FLOPs that a run reports match the papers' formulas, for every family and task.

use heedful::data::batch::{Batch, BatchLayout};
use heedful::layers::{AttentionScore, Pass};
use heedful::models::transformer::TransformerConfig;
use heedful::models::{EncoderConfig, EncoderDecoderConfig, Model};
use heedful::recipe::Recipe;
use heedful::tasks::classify::{ClassifierConfig, Pooling};
use heedful::tasks::language::{LanguageConfig, TextShape};
use heedful::tasks::{Family, ModelConfig};
use heedful::tensor::{DType, flops};

const V: u64 = 50;
const D: u64 = 16;
const F: u64 = 40;

/// Sources of 3 and 5 tokens, targets of 2 and 4, which `<bos>` or `<eos>` makes 3 and 5.
fn batch(layout: BatchLayout) -> Batch {
    let ids = |count: u32| (0..count).map(|i| 5 + i).collect::<Vec<u32>>();
    let pairs = match layout {
        BatchLayout::Labels => vec![(ids(3), vec![1]), (ids(5), vec![0])],
        _ => vec![(ids(3), ids(2)), (ids(5), ids(4))],
    };
    Batch::of(layout, &pairs, [1, 2]).expect("a good batch")
}

fn counted(config: &ModelConfig, layout: BatchLayout) -> u64 {
    let model = config.build(1).expect("a good configuration");
    let batch = batch(layout);
    model.check(&batch).expect("it fits");
    let ((), operations) = flops::counted(|| {
        model.loss(&batch, &mut Pass::training(DType::F32, 1, 1));
    });
    operations
}

/// Tokens of the batch's sources, and of its targets.
const S: u64 = 8;
const T: u64 = 8;
/// All pairs: 3² + 5²; pairs that a causal mask allows: 1 + 2 + 3 and 1 + … + 5.
const ALL: u64 = 34;
const PAST: u64 = 21;

fn transformer() -> TransformerConfig {
    TransformerConfig { d_model: D as usize, d_ff: F as usize, ..TransformerConfig::tiny(V as usize) }
}

/// One layer of self-attention and feed-forward over `tokens`, with `pairs` of tokens that attend to each
/// other.
fn layer(tokens: u64, pairs: u64) -> u64 {
    2 * tokens * (D * 3 * D + D * D + 2 * D * F) + 2 * pairs * 2 * D
}

#[test]
fn the_flops_of_a_transformer_are_the_sum_of_its_layers() {
    let config = transformer();
    let (encoder, decoder) = (config.encoder_layers as u64, config.decoder_layers as u64);
    let cross = 2 * T * (D * D + D * D) + 2 * S * D * 2 * D + 2 * ALL * 2 * D;
    let output = 2 * T * D * V;
    let expected = encoder * layer(S, ALL) + decoder * (layer(T, PAST) + cross) + output;
    let config = EncoderDecoderConfig::Transformer(config).into();
    assert_eq!(counted(&config, BatchLayout::Pairs), expected);
}

#[test]
fn the_flops_of_single_stack_models_are_the_sum_of_their_layers() {
    let (encoder, decoder) = (transformer().encoder(), transformer().decoder());
    let (encoder_layers, decoder_layers) = (encoder.layers as u64, decoder.layers as u64);
    let language = LanguageConfig {
        stack: decoder.into(),
        text: TextShape::Lines,
        block: None,
        label_smoothing: 0.1,
        output_bias: false,
    };
    let expected = decoder_layers * layer(T, PAST) + 2 * T * D * V;
    assert_eq!(counted(&ModelConfig::Language(language), BatchLayout::Lines), expected);

    let classifier = ClassifierConfig {
        labels: 2,
        pooling: Pooling::Attention,
        pooling_score: AttentionScore::Additive,
        pooler: false,
        label_bias: false,
        dropout: 0.0,
        label_smoothing: 0.0,
        encoder: EncoderConfig::Transformer(encoder),
    };
    // Pooling: its keys, and one query per text with 3 and 5 keys; then two labels for two texts.
    let pooling = 2 * S * D * D + 2 * 8 * 2 * D;
    let expected = encoder_layers * layer(S, ALL) + pooling + 2 * 2 * D * 2;
    assert_eq!(counted(&ModelConfig::Classify(classifier), BatchLayout::Labels), expected);
}

/// Counts every product again from the shapes of the parameters: each linear map is used once for every token
/// of its side, except for the decoder's initial state, which is computed once per sentence.
#[test]
fn a_naive_count_over_parameters_agrees_for_the_other_families() {
    for (family, attention_layers) in [(Family::Recurrent, 1), (Family::Convolutional, 0)] {
        let mut recipe = Recipe::default();
        recipe.start_from_family(family);
        recipe.model.d_model = D as usize;
        let config: ModelConfig = EncoderDecoderConfig::from_recipe(&recipe, [V as usize; 2]).into();
        let model = config.build(1).expect("a good configuration");
        let shape = |expected: &str| -> Option<[u64; 2]> {
            let found = model.params().iter().find(|param| param.name() == expected)?;
            Some(found.shape().map(|size| size as u64))
        };
        let mut expected = 2 * T * D * V;
        for param in model.params().iter() {
            let [rows, width] = param.shape().map(|size| size as u64);
            let name = param.name();
            let is_table =
                name.contains("embedding") || name.contains("position") || name.starts_with("output");
            // One row: biases, norms, and the vector of the additive score, which is counted with the
            // attention.
            if rows == 1 || is_table {
                continue;
            }
            let used = match name {
                name if name.starts_with("bridge") => 2,
                name if name.starts_with("encoder") || name.ends_with(".key.weight") => S,
                _ => T,
            };
            expected += 2 * used * rows * width;
        }
        // Keys and values are as wide as the model, unless linear maps change the width.
        let key = shape("decoder.0.key.weight").map_or(D, |[_, width]| width);
        let value = shape("decoder.0.context.weight").map_or(D, |[rows, _]| rows);
        let queries =
            model.params().iter().filter(|param| param.name().ends_with("cross_attention.query.weight"));
        expected += (attention_layers + queries.count() as u64) * 2 * ALL * (key + value);
        let names: Vec<String> =
            model.params().iter().map(|param| format!("{} {:?}", param.name(), param.shape())).collect();
        assert_eq!(counted(&config, BatchLayout::Pairs), expected, "{family:?}: {names:?}");
    }
}
