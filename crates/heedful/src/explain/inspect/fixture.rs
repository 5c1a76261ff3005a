//! Tiny models with random parameters, for tests.

use heedful_tensor::Precision;
use heedful_tensor::ops::Activation;

use super::tasks::Read;
use super::{ClassNames, Inspected, Readout};
use crate::data::batch::BatchLayout;
use crate::data::labels::Labels;
use crate::layers::Norm;
use crate::models::transformer::{Transformer, TransformerConfig};
use crate::models::{EncoderConfig, Inspect, Model};
use crate::recipe::Pooling;
use crate::tasks::classify::{ClassifierConfig, EncoderClassifier};
use crate::tasks::language::{LanguageConfig, LanguageModel, LanguageStack, TextShape};
use crate::tasks::masked::{MaskedConfig, MaskedModel};

const VOCABULARY: usize = 40;

/// The id of the mask token.
pub(in super::super) const MASK: u32 = 3;

/// With GELU: the gradient of a ReLU has jumps, at which finite differences and quadrature are inexact.
fn config(norm: Norm) -> TransformerConfig {
    TransformerConfig {
        norm,
        activation: Activation::Gelu,
        encoder_layers: 2,
        decoder_layers: 2,
        ..TransformerConfig::tiny(VOCABULARY)
    }
}

fn names(count: usize) -> ClassNames<'static> {
    let names = (0..count).map(|id| format!("t{id:02}")).collect();
    ClassNames::Labels(Box::leak(Box::new(Labels::of(names).expect("distinct names"))))
}

fn tokens(ids: &[u32]) -> Read {
    (ids.iter().map(|id| format!("t{id:02}")).collect(), ids.to_vec(), VOCABULARY)
}

fn leaked(model: impl Inspect + 'static) -> &'static dyn Inspect {
    Box::leak(Box::new(model))
}

pub(in super::super) fn translator(norm: Norm, source: &[u32], target: &[u32]) -> Inspected<'static> {
    let model = leaked(Transformer::new(config(norm), 7).expect("a good configuration"));
    let read: Vec<u32> = [1].into_iter().chain(target.iter().copied()).collect();
    let example = (source.to_vec(), target.to_vec());
    let inputs = vec![tokens(source), tokens(&read)];
    Inspected::new(model, BatchLayout::Pairs, example, inputs, names(VOCABULARY), Precision::F32)
        .predicting(target.iter().copied().chain([2]))
}

pub(in super::super) fn language_model(norm: Norm, text: &[u32]) -> Inspected<'static> {
    let config = LanguageConfig {
        stack: LanguageStack::Transformer(config(norm).decoder()),
        label_smoothing: 0.0,
        output_bias: false,
        text: TextShape::Lines,
        block: None,
    };
    let model = leaked(LanguageModel::new(config, 5).expect("a good configuration"));
    let read: Vec<u32> = [1].into_iter().chain(text.iter().copied()).collect();
    let example = (Vec::new(), text.to_vec());
    let inputs = vec![tokens(&read)];
    Inspected::new(model, BatchLayout::Lines, example, inputs, names(VOCABULARY), Precision::F32)
        .predicting(text.iter().copied().chain([2]))
}

pub(in super::super) fn classifier(pooling: Pooling, text: &[u32]) -> Inspected<'static> {
    let config = ClassifierConfig {
        labels: 3,
        pooling,
        pooling_score: crate::layers::AttentionScore::ALL[0],
        pooler: false,
        label_bias: false,
        dropout: 0.0,
        label_smoothing: 0.0,
        encoder: EncoderConfig::Transformer(config(Norm::Pre).encoder()),
    };
    let model = leaked(EncoderClassifier::new(config, 3).expect("a good configuration"));
    let inputs = vec![tokens(&model.special_tokens().surrounded(text))];
    let example = (text.to_vec(), vec![0]);
    Inspected::new(model, BatchLayout::Labels, example, inputs, names(3), Precision::F32)
        .with_readout(Readout::Pooled(pooling))
        .predicting([1])
}

pub(in super::super) fn filler(text: &[u32]) -> Inspected<'static> {
    let stack = config(Norm::Post).encoder();
    let config = MaskedConfig { stack, label_smoothing: 0.0, output_bias: false };
    let model = leaked(MaskedModel::new(config, 9).expect("a good configuration"));
    let gaps: Vec<usize> = (0..text.len()).filter(|&at| text[at] == MASK).collect();
    let predicted = gaps.iter().map(|&at| 10 + at as u32).collect::<Vec<_>>();
    let example = (text.to_vec(), Vec::new());
    Inspected::new(model, BatchLayout::Texts, example, vec![tokens(text)], names(VOCABULARY), Precision::F32)
        .with_readout(Readout::Rows(gaps))
        .predicting(predicted)
}

/// A text for every task.
pub(in super::super) fn every_task() -> Vec<Inspected<'static>> {
    vec![
        translator(Norm::Post, &[5, 6, 7, 8], &[9, 10, 11]),
        translator(Norm::Pre, &[5, 6, 7], &[9, 10, 11, 12]),
        language_model(Norm::Pre, &[4, 9, 30, 7]),
        classifier(Pooling::Attention, &[4, 9, 30, 7, 8]),
        classifier(Pooling::Mean, &[4, 9, 30]),
        filler(&[4, MASK, 30, 7, MASK]),
    ]
}

/// A language model of two layers with one head each, set by hand: the first attends to the previous
/// position, the second to the token after an earlier occurrence of the current one.
///
/// ```text
/// columns    0 … V−1: the token     V … 2V−1: the previous token     2V … 2V+P−1: the position
/// layer 0    q = position, k = position + 1, v = token, written into the columns of the previous token
/// layer 1    q = token, k = previous token
/// ```
pub(in super::super) fn induction_model(text: &[u32]) -> Inspected<'static> {
    const TOKENS: usize = 12;
    const POSITIONS: usize = 20;
    const WIDTH: usize = 2 * TOKENS + POSITIONS;
    let stack = crate::models::transformer::StackConfig {
        d_model: WIDTH,
        heads: 1,
        layers: 2,
        vocabulary: TOKENS,
        scale_embeddings: false,
        positions: crate::layers::Positions::Learned { max_length: POSITIONS },
        ..config(Norm::Pre).decoder()
    };
    let config = LanguageConfig {
        stack: LanguageStack::Transformer(stack),
        label_smoothing: 0.0,
        output_bias: false,
        text: TextShape::Lines,
        block: None,
    };
    let model = LanguageModel::new(config, 5).expect("a good configuration");
    let set = |name: &str, ones: &[(usize, usize)], size: f32| {
        let param = model.params().get(name).expect(name);
        let [rows, width] = param.shape();
        let mut values = vec![0.0; rows * width];
        ones.iter().for_each(|(row, column)| values[row * width + column] = size);
        param.set(&values);
    };
    set("embedding.weight", &(0..TOKENS).map(|i| (i, i)).collect::<Vec<_>>(), 1.0);
    set("position.weight", &(0..POSITIONS).map(|i| (i, 2 * TOKENS + i)).collect::<Vec<_>>(), 1.0);
    let [previous, position] = [TOKENS, 2 * TOKENS];
    // The columns of q, k and v begin at 0, WIDTH and 2 · WIDTH.
    let find_previous: Vec<(usize, usize)> = (0..POSITIONS)
        .map(|i| (position + i, i))
        .chain((1..POSITIONS).map(|i| (position + i - 1, WIDTH + i)))
        .collect();
    let find_token: Vec<(usize, usize)> =
        (0..TOKENS).flat_map(|i| [(i, i), (previous + i, WIDTH + i)]).collect();
    let copy: Vec<(usize, usize)> = (0..TOKENS).map(|i| (i, 2 * WIDTH + i)).collect();
    set("decoder.0.self_attention.qkv.weight", &[find_previous, copy].concat(), 8.0);
    set("decoder.1.self_attention.qkv.weight", &find_token, 8.0);
    let written: Vec<(usize, usize)> = (0..TOKENS).map(|i| (i, previous + i)).collect();
    set("decoder.0.self_attention.output.weight", &written, 0.05);
    for name in ["decoder.0.feed_forward.outer.weight", "decoder.1.feed_forward.outer.weight"] {
        set(name, &[], 0.0);
    }
    let read: Vec<u32> = [1].into_iter().chain(text.iter().copied()).collect();
    let example = (Vec::new(), text.to_vec());
    let (pieces, ids, _) = tokens(&read);
    let inputs = vec![(pieces, ids, TOKENS)];
    Inspected::new(leaked(model), BatchLayout::Lines, example, inputs, names(TOKENS), Precision::F32)
        .predicting(text.iter().copied().chain([2]))
}
