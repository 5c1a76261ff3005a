//! A model's own special tokens: different ids, an end of sources, a start without a token, suppressed
//! tokens, and tokens around a text.

use heedful::data::batch::{Batch, BatchLayout};
use heedful::data::tokenizer::{Tokenizers, VocabularyKind, VocabularyOptions, WordCounts};
use heedful::data::{EOS, SpecialTokens};
use heedful::decode::{MaxLength, Sampling, SearchOptions, score, search};
use heedful::explain::{Explanation, WeightForm};
use heedful::layers::{AttentionScore, Pass, Tying};
use heedful::models::transformer::TransformerConfig;
use heedful::models::{EncoderConfig, Generate, Label, Model};
use heedful::tasks::classify::{ClassifierConfig, EncoderClassifier, Pooling};
use heedful::tasks::language::{LanguageConfig, LanguageModel, TextShape};
use heedful::tasks::masked::{MaskedConfig, MaskedModel, Masking};
use heedful::tasks::translate::Translator;
use heedful::tensor::{DType, Param, Params, Precision, Ragged};

use crate::{VOCABULARY, build, check_steps, copies, losses};

fn wide() -> SearchOptions {
    let (max_length, compute) = (MaxLength::Absolute(8), Precision::F32);
    SearchOptions { beam: 3, n_best: 2, max_length, compute: Some(compute), ..SearchOptions::default() }
}

fn config(special: SpecialTokens) -> TransformerConfig {
    TransformerConfig { special, output_bias: true, ..TransformerConfig::tiny(VOCABULARY) }
}

/// A permutation of the token ids.
fn permuted(token: u32) -> u32 {
    (token * 5 + 3) % VOCABULARY as u32
}

fn all_permuted(tokens: &[u32]) -> Vec<u32> {
    tokens.iter().map(|&token| permuted(token)).collect()
}

/// Copies parameters; those with a row or a column per token are permuted.
fn copy_permuted(from: &Params, to: &Params) {
    for param in to.iter() {
        let values = from.get(param.name()).expect("the same parameters").to_vec();
        param.set(&match param.shape() {
            [VOCABULARY, width] => permuted_rows(&values, width),
            [1, VOCABULARY] => permuted_rows(&values, 1),
            _ => values,
        });
    }
}

fn permuted_rows(values: &[f32], width: usize) -> Vec<f32> {
    let mut found = vec![0.0; values.len()];
    for (token, row) in values.chunks(width).enumerate() {
        let to = permuted(token as u32) as usize * width;
        found[to..to + width].copy_from_slice(row);
    }
    found
}

fn varied(param: &Param) {
    param.set(&(0..param.range().len()).map(|i| (i as f32 * 1.3).sin()).collect::<Vec<_>>());
}

#[test]
fn a_model_with_permuted_ids_gives_the_permuted_output() {
    let special = SpecialTokens { bos: permuted(1), eos: permuted(2), ..SpecialTokens::default() };
    let sources: Vec<Vec<u32>> = vec![vec![5, 6, 7], vec![12, 4], vec![9, 9, 9, 3]];
    let other_sources: Vec<Vec<u32>> = sources.iter().map(|source| all_permuted(source)).collect();
    let stack = |special| TransformerConfig { special, ..TransformerConfig::tiny(VOCABULARY) }.decoder();
    let language = |special| {
        let (stack, text) = (stack(special).into(), TextShape::Lines);
        let config = LanguageConfig { stack, text, block: None, label_smoothing: 0.0, output_bias: true };
        LanguageModel::new(config, 3).expect("a good configuration")
    };
    let translators = [build(&config(SpecialTokens::default())), build(&config(special.clone()))];
    let languages = [language(SpecialTokens::default()), language(special)];
    let pairs: [[&dyn Generate; 2]; 2] =
        [translators.each_ref().map(|model| model as _), languages.each_ref().map(|model| model as _)];
    for [own, other] in pairs {
        varied(&own.params().get("output.bias").expect("a bias"));
        copy_permuted(own.params(), other.params());
        let found = search(own, &sources, &wide()).expect("good sources");
        let other_found = search(other, &other_sources, &wide()).expect("good sources");
        for (found, other) in found.iter().flatten().zip(other_found.iter().flatten()) {
            assert_eq!(all_permuted(&found.tokens), other.tokens);
            assert!((found.score - other.score).abs() < 1e-5, "{} and {}", found.score, other.score);
        }
        let targets = [vec![8, 4, 11], vec![6], vec![]];
        let pairs: Vec<_> = sources.iter().cloned().zip(targets.clone()).collect();
        let scores = score(own, &pairs, &wide()).expect("good pairs");
        let permuted = other_sources.iter().cloned().zip(targets.iter().map(|target| all_permuted(target)));
        let others = score(other, &permuted.collect::<Vec<_>>(), &wide()).expect("good pairs");
        for (score, other) in scores.iter().zip(&others) {
            assert!((score.log_probability - other.log_probability).abs() < 1e-5);
        }
    }
}

#[test]
fn suppressed_tokens_are_never_generated() {
    for suppressed in [vec![], vec![7], vec![0, 3, 7, 9]] {
        let model =
            build(&config(SpecialTokens { suppressed: suppressed.clone(), ..SpecialTokens::default() }));
        let mut bias = vec![0.0; VOCABULARY];
        (bias[7], bias[9], bias[4]) = (30.0, 25.0, 20.0);
        model.params().get("output.bias").expect("a bias").set(&bias);
        let likely = [7, 9, 4].into_iter().find(|token| !suppressed.contains(token)).expect("one is left");
        // A suppressed token keeps its probability, so the others are improbable: without a minimum length
        // the empty output wins.
        let beam = SearchOptions { min_length: 8, ..wide() };
        let greedy = SearchOptions { beam: 1, n_best: 1, ..beam.clone() };
        let sampled = SearchOptions { sampling: Some(Sampling::default()), ..greedy.clone() };
        for options in [beam, greedy, sampled] {
            let found = search(&model, &[vec![5, 6]], &options).expect("a good source");
            for hypothesis in &found[0] {
                assert!(hypothesis.tokens.iter().all(|token| !suppressed.contains(token)), "{found:?}");
            }
            assert_eq!(found[0][0].tokens[0], likely, "{suppressed:?}: {found:?}");
        }
    }
}

#[test]
fn a_decoder_can_start_from_a_zero_vector() {
    let zero = SpecialTokens { start_from_zero: true, ..SpecialTokens::default() };
    let untied = |special| TransformerConfig { tying: Tying::None, ..config(special) };
    let (model, plain) = (build(&untied(zero.clone())), build(&untied(SpecialTokens::default())));
    // The same as a row of zeros for <bos>, when nothing else uses that row.
    let table = plain.params().get("target_embedding.weight").expect("a table");
    let mut values = table.to_vec();
    values[64..128].fill(0.0);
    table.set(&values);
    let batch = Batch::new(&copies(1), 1, 2).expect("a good batch");
    let logits = |model: &heedful::models::transformer::Transformer| {
        model.logits(&batch, &mut Pass::inference(DType::F32)).to_vec()
    };
    assert_eq!(logits(&model), logits(&plain));
    check_steps(&model);
    let found = model.loss(&batch, &mut Pass::training(DType::F32, 1, 1));
    heedful::tensor::tape::backward(&found.loss);
    let gradient = model.params().get("target_embedding.weight").expect("a table").gradient();
    assert!(gradient[64..128].iter().all(|&g| g == 0.0) && gradient[256..].iter().any(|&g| g != 0.0));
    model.params().clear_gradients();
    let ends = SpecialTokens { source_eos: Some(EOS), ..zero };
    let read = |step| Batch::for_model(BatchLayout::Pairs, &copies(step), &ends).expect("a good batch");
    assert!(read(1).source_sequences.ranges().all(|range| read(1).source[range.end - 1] == EOS));
    let (first, last) = losses(build(&config(ends.clone())), 60, read);
    assert!(last < 0.8 * first, "the loss went from {first} to {last}");
}

fn tokenizers() -> Tokenizers {
    let options =
        VocabularyOptions { kind: VocabularyKind::Character, size: 300, ..VocabularyOptions::default() };
    let mut counts = WordCounts::new(&options);
    counts.add("a dog runs in the rain.");
    Tokenizers::joint(counts.train().expect("enough text"))
}

#[test]
fn a_source_ends_with_the_models_end_token_in_every_use_of_a_translator() {
    let tokenizers = tokenizers();
    let special = SpecialTokens { source_eos: Some(EOS), ..SpecialTokens::default() };
    let config = TransformerConfig { special, ..TransformerConfig::tiny(tokenizers.source.size()) };
    let translator = Translator::new(Box::new(build(&config)), tokenizers.clone());
    let text = "a dog runs.";
    let source = translator.encode(text);
    assert_eq!(source[..source.len() - 1], tokenizers.source.encode(text));
    assert_eq!((source.last(), translator.encode(" ").len()), (Some(&EOS), 0));
    let long = "a dog ".repeat(3000);
    let cut = translator.source_limit().first(&long, |text| translator.encode(text));
    assert_eq!((cut.tokens.len(), cut.tokens.last()), (translator.source_limit().tokens(), Some(&EOS)));
    let found = translator.translate([text], &wide()).expect("a translation");
    assert_eq!(found[0].source, source);
    let explained = Explanation::new(&translator, text, &found[0], WeightForm::Rows, &wide());
    let explained = explained.expect("an explanation");
    assert_eq!(explained.source.tokens.last().expect("tokens").piece, "<eos>");
    for layer in &explained.outputs[0].attention {
        assert!(layer.keys == source.len() || layer.queries == layer.keys, "{}", layer.name);
    }
}

#[test]
fn texts_are_encoded_between_their_first_and_last_tokens() {
    let special = SpecialTokens { text_first: Some(11), text_last: Some(12), mask: 10, ..Default::default() };
    let stack = |special| TransformerConfig { special, ..TransformerConfig::tiny(VOCABULARY) }.encoder();
    let masked = |special| {
        let config = MaskedConfig { stack: stack(special), label_smoothing: 0.0, output_bias: false };
        MaskedModel::new(config, 1).expect("a good configuration")
    };
    let (text, sequences) = ([4, 5, 6, 7, 8], Ragged::from_lengths([2, 3]));
    let (read, longer) = ([11, 4, 5, 12, 11, 6, 7, 8, 12], Ragged::from_lengths([4, 5]));
    let pass = || Pass::inference(DType::F32);
    let found = masked(special.clone()).token_scores(&text, &sequences, &[1, 2, 4], &mut pass());
    let plain = masked(SpecialTokens::default()).token_scores(&read, &longer, &[2, 5, 7], &mut pass());
    assert_eq!(found.to_vec(), plain.to_vec());
    let classifier = |pooling, special| {
        let config = ClassifierConfig {
            labels: 3,
            pooling,
            pooling_score: AttentionScore::Additive,
            pooler: false,
            label_bias: false,
            dropout: 0.0,
            label_smoothing: 0.0,
            encoder: EncoderConfig::Transformer(stack(special)),
        };
        EncoderClassifier::new(config, 1).expect("a good configuration")
    };
    for pooling in [Pooling::Attention, Pooling::Mean, Pooling::Last] {
        let found = classifier(pooling, special.clone()).label_scores(&text, &sequences, &mut pass());
        let plain = classifier(pooling, SpecialTokens::default()).label_scores(&read, &longer, &mut pass());
        assert_eq!(found.to_vec(), plain.to_vec(), "{pooling:?}");
    }
    // The first token is the one before the text, or <bos> by default.
    let ends = SpecialTokens { text_first: Some(1), text_last: None, ..special.clone() };
    let [named, default] = [ends, SpecialTokens::default()].map(|special| {
        classifier(Pooling::First, special).label_scores(&text, &sequences, &mut pass()).to_vec()
    });
    assert_eq!(named, default);
    let (first, last) = losses(masked(special), 100, |step| {
        let texts: Vec<_> = copies(step).into_iter().map(|(text, _)| (vec![text[0]; 6], vec![])).collect();
        Batch::of(BatchLayout::Texts, &texts, [1, 2]).expect("a good batch")
    });
    assert!(last < 0.8 * first, "the loss went from {first} to {last}");
}

#[test]
fn masking_uses_the_models_mask_token_and_random_text_tokens() {
    let special = SpecialTokens { mask: 10, pad: 12, bos: 3, eos: 5, ..SpecialTokens::default() };
    let text: Vec<u32> = [0, 1, 2, 4, 6, 7, 8, 9, 11].repeat(400);
    let sequences = Ragged::from_lengths([text.len()]);
    let masking = Masking::new(VOCABULARY, &special);
    let masked = heedful::tasks::masked::MaskedText::draw(&text, &sequences, &masking, None);
    let read = |token: u32| masked.rows.iter().filter(|&&row| masked.text[row] == token).count();
    assert_eq!([read(12), read(3), read(5)], [0, 0, 0]);
    assert!(read(10) > 350 && [0, 1, 2, 4, 6, 7, 8, 9, 11].iter().all(|&token| read(token) > 0));
}

#[test]
fn invalid_special_tokens_are_rejected() {
    let complaint = |special| config(special).validate().expect_err("it cannot be built").to_string();
    let default = SpecialTokens::default;
    let beyond = complaint(SpecialTokens { bos: 13, ..default() });
    assert_eq!(beyond, "special.bos is 13, but the vocabulary has 13 tokens: give the id of one of them");
    assert!(
        complaint(SpecialTokens { suppressed: vec![99], ..default() }).contains("special.suppressed is 99")
    );
    assert!(complaint(SpecialTokens { suppressed: vec![2], ..default() }).contains("which ends outputs"));
    assert!(complaint(SpecialTokens { suppressed: vec![4, 4], ..default() }).contains("ascending"));
    let text = serde_json::to_string(&TransformerConfig::tiny(VOCABULARY)).expect("JSON");
    assert!(!text.contains("special"), "{text}");
    let config = config(SpecialTokens { suppressed: vec![0, 4], source_eos: Some(2), ..default() });
    let text = serde_json::to_string(&config).expect("JSON");
    assert_eq!(serde_json::from_str::<TransformerConfig>(&text).expect("as written"), config);
}
