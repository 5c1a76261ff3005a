//! int8: the same bits on every instruction set, close to f32. A separate test binary, because it changes the
//! instruction set.

use heedful::data::batch::Batch;
use heedful::decode::{Hypothesis, MaxLength, SearchOptions, attend_in, score, search};
use heedful::layers::{Norm, Pass};
use heedful::models::Generate;
use heedful::models::convolution::{Convolutional, ConvolutionalConfig};
use heedful::models::recurrent::{RecurrentConfig, Seq2Seq};
use heedful::models::transformer::{Transformer, TransformerConfig};
use heedful::tensor::Precision;
use heedful::tensor::cpu::isa;
use heedful::tensor::ops::Activation;

const VOCABULARY: usize = 61;

fn variants() -> [TransformerConfig; 3] {
    // No width is a multiple of a tile.
    let odd = TransformerConfig { d_model: 36, d_ff: 70, heads: 3, ..TransformerConfig::tiny(VOCABULARY) };
    [
        TransformerConfig { norm: Norm::Pre, activation: Activation::Gelu, window: Some(3), ..odd.clone() },
        odd,
        TransformerConfig { d_model: 64, heads: 2, d_ff: 130, ..TransformerConfig::tiny(VOCABULARY) },
    ]
}

fn sources() -> Vec<Vec<u32>> {
    let word = |i: usize| (3 + (i * i * 7 + i * 31) % (VOCABULARY - 3)) as u32;
    let lengths = [1, 9, 33, 2, 17, 5, 40, 12];
    lengths.iter().enumerate().map(|(i, &n)| (i * 13..i * 13 + n).map(word).collect()).collect()
}

fn bits(found: &[Hypothesis]) -> Vec<(Vec<u32>, u64, u64)> {
    found.iter().map(|f| (f.tokens.clone(), f.score.to_bits(), f.log_probability.to_bits())).collect()
}

#[test]
fn a_search_has_the_same_bits_on_every_instruction_set() {
    let options = SearchOptions {
        compute: Some(Precision::Int8),
        beam: 4,
        max_length: MaxLength::Relative { factor: 0.5, plus: 9 },
        ..SearchOptions::default()
    };
    for config in variants() {
        let model = Transformer::new(config, 5).expect("a good configuration");
        let mut first = None;
        isa::with_each(|isa| {
            let found = search(&model, &sources(), &options).expect("good sources");
            let found: Vec<_> = found.iter().map(|found| bits(found)).collect();
            assert!(*first.get_or_insert_with(|| found.clone()) == found, "{isa}");
        });
    }
}

#[test]
fn int8_scores_are_close_to_f32() {
    let pairs: Vec<_> = sources().into_iter().map(|source| (source, vec![8, 9, 10])).collect();
    let batch = Batch::new(&pairs, 1, 2).expect("a good batch");
    isa::with_each(|isa| {
        for config in variants() {
            let model = Transformer::new(config, 5).expect("a good configuration");
            let scores = |compute| model.logits(&batch, &mut Pass::inference(compute)).to_vec();
            let (exact, rounded) = (scores(Precision::F32), scores(Precision::Int8));
            let square =
                |values: &mut dyn Iterator<Item = f32>| values.map(|x| f64::from(x * x)).sum::<f64>();
            let distance = square(&mut exact.iter().zip(&rounded).map(|(a, b)| a - b)).sqrt();
            let size = square(&mut exact.iter().copied()).sqrt();
            assert!(distance > 0.0 && distance < 0.03 * size, "{isa}: {}", distance / size);
        }
    });
}

/// Explaining a translation computes like the search: keys and values are rounded alike, logits use the same
/// product.
#[test]
fn the_full_pass_has_the_probabilities_of_single_steps() {
    let transformer = TransformerConfig { output_bias: true, ..TransformerConfig::tiny(VOCABULARY) };
    let models: [Box<dyn Generate>; 3] = [
        Box::new(Transformer::new(transformer, 5).expect("a good configuration")),
        // Seed 5 has two activations that round up in the pass and down in the step: their f32 values differ in
        // the last bits.
        Box::new(Convolutional::new(ConvolutionalConfig::tiny(VOCABULARY), 6).expect("a good configuration")),
        Box::new(Seq2Seq::new(RecurrentConfig::tiny(VOCABULARY), 5).expect("a good configuration")),
    ];
    let options = SearchOptions { compute: Some(Precision::Int8), ..SearchOptions::default() };
    for (number, model) in models.iter().enumerate() {
        for source in sources() {
            let target: Vec<u32> = source.iter().map(|id| 3 + (id * 5) % (VOCABULARY as u32 - 3)).collect();
            let stepped =
                score(&**model, &[(source.clone(), target.clone())], &options).expect("a good pair");
            let mut pass = Pass::inference(Precision::Int8).recording();
            let (maps, whole) = attend_in(&mut pass, &**model, &source, &target).expect("a good pair");
            assert!(number == 2 || !maps.is_empty(), "only the recurrent model has no attention");
            for (whole, stepped) in whole.iter().zip(&stepped[0].tokens) {
                assert!((whole - stepped).abs() < 2e-4, "model {number}: {whole} and {stepped}");
            }
        }
    }
}
