//! Exported models are imported again bit for bit; an error names what a format cannot express.

use std::path::Path;

use heedful::data::SpecialTokens;
use heedful::data::tokenizer::{Tokenizer, Tokenizers, VocabularyOptions, WordCounts};
use heedful::exchange::export::{self, ExportFormat};
use heedful::exchange::import::{self, ORIGIN};
use heedful::layers::{AttentionScore, Halves, Norm, NormKind, Positions, Tying};
use heedful::models::transformer::{StackConfig, TransformerConfig};
use heedful::models::{EncoderDecoderConfig, Model};
use heedful::recipe::{DecoderLayer, Family, Preset, Recipe};
use heedful::store::weights::Weights;
use heedful::tasks::ModelConfig;
use heedful::tasks::folder::{ModelFolder, TokenizerFiles};
use heedful::tasks::language::{LanguageConfig, TextShape};
use heedful::tasks::masked::MaskedConfig;
use heedful::tensor::Precision;
use heedful::tensor::ops::Activation;

const BOTH: [ExportFormat; 2] = [ExportFormat::Ctranslate2, ExportFormat::HuggingFace];
const CTRANSLATE2: [ExportFormat; 1] = [ExportFormat::Ctranslate2];

fn tokenizer(lines: &[&str]) -> Tokenizer {
    let mut counts = WordCounts::new(&VocabularyOptions { size: 300, ..VocabularyOptions::default() });
    lines.iter().for_each(|line| counts.add(line));
    counts.train().expect("enough text")
}

fn joint() -> Tokenizers {
    Tokenizers::joint(tokenizer(&["the small cat sits on a mat", "the old dog runs", "一只 小猫"]))
}

fn separate() -> Tokenizers {
    Tokenizers::separate(tokenizer(&["the small cat sits"]), tokenizer(&["ein alter hund läuft"]))
}

/// A small translator with these vocabularies.
fn translator(tokenizers: &Tokenizers) -> TransformerConfig {
    TransformerConfig {
        source_vocabulary: tokenizers.source.size(),
        target_vocabulary: tokenizers.target.size(),
        d_model: 8,
        d_ff: 12,
        heads: 2,
        encoder_layers: 2,
        decoder_layers: 2,
        ..TransformerConfig::tiny(300)
    }
}

fn stack(tokenizers: &Tokenizers) -> StackConfig {
    StackConfig { vocabulary: tokenizers.source.size(), ..translator(tokenizers).decoder() }
}

fn language(stack: StackConfig) -> LanguageConfig {
    LanguageConfig {
        stack: stack.into(),
        text: TextShape::Running,
        block: Some(64),
        label_smoothing: 0.05,
        output_bias: false,
    }
}

fn masked(stack: StackConfig) -> MaskedConfig {
    MaskedConfig { stack, label_smoothing: 0.0, output_bias: false }
}

/// Writes the folder of a model whose parameters all differ.
fn save(config: &ModelConfig, tokenizers: &Tokenizers, folder: &Path) -> Weights {
    let model = config.build(7).expect("a good configuration");
    let mut state = 1_u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from((state >> 16) as i16) / 40_000.0
    };
    let flat: Vec<f32> = (0..model.params().flat_len()).map(|_| number()).collect();
    model.params().set(&flat);
    tokenizers.save(folder).expect("room on the disk");
    let files = TokenizerFiles::find(folder).expect("they were written");
    let weights = Weights::of(model.params());
    let saved = ModelFolder::create(folder, config.clone(), &files, None).expect("room on the disk");
    saved.save(&weights).expect("room on the disk");
    weights
}

fn same_bits(found: &Weights, expected: &Weights, case: &str) {
    assert_eq!(found.iter().count(), expected.iter().count(), "{case}");
    for (name, _, numbers) in expected.iter() {
        let bits = |numbers: &[f32]| numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>();
        let found = found.get(name).unwrap_or_else(|| panic!("{case}: no {name}"));
        assert_eq!(bits(found), bits(numbers), "{case}: {name}");
    }
}

/// Exports a model to these formats and imports it again.
fn round_trip(config: impl Into<ModelConfig>, tokenizers: &Tokenizers, formats: &[ExportFormat]) {
    let (config, root) = (config.into(), tempfile::tempdir().expect("a folder"));
    let model = root.path().join("model");
    let weights = save(&config, tokenizers, &model);
    for &format in formats {
        let case = format!("{format:?} of {config:?}");
        let to = root.path().join(format!("{format:?}"));
        let exported = export::prepare(&model, format).unwrap_or_else(|error| panic!("{case}: {error}"));
        exported.save(&to).expect("room on the disk");
        let again = import::read(&to).unwrap_or_else(|error| panic!("{case}: {error}"));
        same_bits(again.weights(), &weights, &case);
        assert_eq!(again.config, config, "{case}");
        assert_eq!(again.tokenizers.source.to_json(), tokenizers.source.to_json(), "{case}");
        assert_eq!(again.tokenizers.target.to_json(), tokenizers.target.to_json(), "{case}");
    }
}

fn whole(config: TransformerConfig) -> EncoderDecoderConfig {
    EncoderDecoderConfig::Transformer(config)
}

#[test]
fn translators_round_trip_through_both_formats() {
    let (joint, separate) = (joint(), separate());
    let base = translator(&joint);
    for norm in [Norm::Post, Norm::Pre] {
        for tying in [Tying::All, Tying::SourceTarget] {
            for (activation, output_bias) in [(Activation::Relu, true), (Activation::Silu, false)] {
                let config = TransformerConfig { norm, tying, activation, output_bias, ..base.clone() };
                round_trip(whole(config), &joint, &BOTH);
            }
        }
        let positions = Positions::Halves(Halves::MarianMt);
        let config = TransformerConfig { norm, positions, scale_embeddings: false, ..base.clone() };
        round_trip(whole(config), &joint, &BOTH);
    }
    for tying in [Tying::TargetOutput, Tying::None] {
        let config = TransformerConfig { tying, activation: Activation::Gelu, ..translator(&separate) };
        round_trip(whole(config.clone()), &separate, &BOTH);
        round_trip(whole(TransformerConfig { norm: Norm::Pre, ..config }), &separate, &CTRANSLATE2);
    }
    let special = SpecialTokens { source_eos: Some(2), suppressed: vec![0, 3], ..SpecialTokens::default() };
    round_trip(whole(TransformerConfig { special, ..base }), &joint, &BOTH);
}

#[test]
fn ctranslate2_supports_all_positions_norms_and_start_tokens_of_translators() {
    let joint = joint();
    let base = TransformerConfig { norm: Norm::Pre, ..translator(&joint) };
    for positions in [
        Positions::Learned { max_length: 9 },
        Positions::None,
        Positions::Halves(Halves::Marian),
        Positions::Halves(Halves::OpenNmt),
    ] {
        round_trip(whole(TransformerConfig { positions, ..base.clone() }), &joint, &CTRANSLATE2);
    }
    let special =
        SpecialTokens { bos: 2, source_eos: Some(2), start_from_zero: true, ..SpecialTokens::default() };
    for config in [
        TransformerConfig { embedding_norm: true, norm_epsilon: 1e-9, ..base.clone() },
        TransformerConfig { activation: Activation::GeluTanh, special, ..base },
    ] {
        round_trip(whole(config), &joint, &CTRANSLATE2);
    }
}

#[test]
fn language_models_round_trip_through_both_formats() {
    let joint = joint();
    for norm in [Norm::Post, Norm::Pre] {
        for positions in [Positions::Sinusoidal, Positions::Learned { max_length: 11 }, Positions::None] {
            for scale_embeddings in [true, false] {
                let stack = StackConfig { norm, positions, scale_embeddings, ..stack(&joint) };
                round_trip(language(stack), &joint, &BOTH);
            }
        }
        let stack = StackConfig { norm, embedding_norm: true, norm_epsilon: 1e-6, ..stack(&joint) };
        let config =
            LanguageConfig { output_bias: true, text: TextShape::Lines, block: None, ..language(stack) };
        round_trip(config, &joint, &CTRANSLATE2);
    }
}

#[test]
fn masked_models_round_trip_through_both_formats() {
    let joint = joint();
    for (norm, embedding_norm) in [(Norm::Post, true), (Norm::Pre, false)] {
        for positions in [Positions::Sinusoidal, Positions::Learned { max_length: 11 }] {
            for scale_embeddings in [true, false] {
                let activation = Activation::Gelu;
                let stack = StackConfig {
                    norm,
                    embedding_norm,
                    positions,
                    scale_embeddings,
                    activation,
                    ..stack(&joint)
                };
                for output_bias in [true, false] {
                    round_trip(MaskedConfig { output_bias, ..masked(stack.clone()) }, &joint, &BOTH);
                }
            }
        }
    }
    round_trip(masked(StackConfig { activation: Activation::Gelu, ..stack(&joint) }), &joint, &CTRANSLATE2);
}

#[test]
fn int8_and_bf16_weights_keep_their_values() {
    let (joint, root) = (joint(), tempfile::tempdir().expect("a folder"));
    let config: ModelConfig = whole(translator(&joint)).into();
    let wide = root.path().join("wide");
    save(&config, &joint, &wide);
    let opened = ModelFolder::open(&wide).expect("a model");
    let model = opened.load().expect("a model");
    for precision in [Precision::Int8, Precision::Bf16] {
        let narrow = root.path().join(precision.to_string());
        opened.copy_to(&narrow).and_then(|to| to.save_narrow(model.params(), precision)).expect("room");
        let weights = ModelFolder::open(&narrow).and_then(|folder| folder.weights()).expect("its weights");
        for format in BOTH {
            let to = root.path().join(format!("{precision}-{format:?}"));
            export::prepare(&narrow, format).expect("it fits").save(&to).expect("room");
            same_bits(import::read(&to).expect("an export").weights(), &weights, "narrow");
        }
    }
}

#[test]
fn imported_models_are_exported_with_their_own_vocabularies_and_origin() {
    let root = tempfile::tempdir().expect("a folder");
    for (name, formats) in [
        ("marian-swish", &BOTH[..]),
        ("marian-gelu-untied", &BOTH),
        ("ctranslate2", &CTRANSLATE2),
        ("bert", &BOTH),
        ("gpt2", &BOTH),
        ("gpt2-relu", &BOTH),
    ] {
        let first = import::read(super::folder(name)).expect("a good model");
        let model = root.path().join(name);
        first.save(&model).expect("room on the disk");
        for &format in formats {
            let to = root.path().join(format!("{name}-{format:?}"));
            let exported = export::prepare(&model, format).unwrap_or_else(|error| panic!("{name}: {error}"));
            exported.save(&to).expect("room on the disk");
            let origin = std::fs::read_to_string(to.join(ORIGIN)).expect("the origin file");
            assert!(origin.contains(&format!("Imported from `{name}`")), "{origin}");
            let again = import::read(&to).unwrap_or_else(|error| panic!("{name}: {error}"));
            same_bits(again.weights(), first.weights(), name);
            assert_eq!(again.config, first.config, "{name} {format:?}");
            for text in ["the small cat runs", "a dog  eats"] {
                let ids = |tokenizers: &Tokenizers| tokenizers.source.encode(text);
                assert_eq!(ids(&again.tokenizers), ids(&first.tokenizers), "{name} {format:?}");
            }
            assert!(again.origin.contains(&format!("Imported from `{name}`")), "{}", again.origin);
        }
    }
}

/// The error of exporting a model.
fn refusal(config: impl Into<ModelConfig>, tokenizers: &Tokenizers, format: ExportFormat) -> String {
    let root = tempfile::tempdir().expect("a folder");
    save(&config.into(), tokenizers, root.path());
    match export::prepare(root.path(), format) {
        Ok(exported) => panic!("it was exported as {}", exported.kind()),
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains(" cannot be exported as "), "{error}");
            error
        }
    }
}

#[test]
fn errors_name_what_a_format_cannot_express() {
    let (joint, separate) = (joint(), separate());
    let base = translator(&joint);
    let both = |config: TransformerConfig, name: &str| {
        for format in BOTH {
            let error = refusal(whole(config.clone()), &joint, format);
            assert!(error.contains(name), "{error}");
        }
    };
    both(TransformerConfig { key_width: Some(4), ..base.clone() }, "`key_width`: 4");
    both(TransformerConfig { value_width: Some(4), ..base.clone() }, "`value_width`: 4");
    both(TransformerConfig { norm_kind: NormKind::Batch, ..base.clone() }, "batch norm");
    both(TransformerConfig { score: AttentionScore::Dot, ..base.clone() }, "the attention score dot");
    both(TransformerConfig { window: Some(3), ..base.clone() }, "`window`");
    both(TransformerConfig { decoder_layer: DecoderLayer::Ssru, ..base.clone() }, "SSRU layers");
    let hugging_face = |config: TransformerConfig, tokenizers: &Tokenizers, name: &str| {
        let error = refusal(whole(config), tokenizers, ExportFormat::HuggingFace);
        assert!(error.contains(name) && error.contains("--to ctranslate2"), "{error}");
    };
    let learned = Positions::Learned { max_length: 8 };
    let start = SpecialTokens { start_from_zero: true, ..SpecialTokens::default() };
    hugging_face(TransformerConfig { positions: learned, ..base.clone() }, &joint, "learned positions");
    hugging_face(TransformerConfig { positions: Positions::None, ..base.clone() }, &joint, "no positions");
    hugging_face(TransformerConfig { norm_epsilon: 1e-9, ..base.clone() }, &joint, "`norm_epsilon`");
    hugging_face(TransformerConfig { embedding_norm: true, ..base.clone() }, &joint, "`embedding_norm`");
    hugging_face(TransformerConfig { special: start, ..base.clone() }, &joint, "begins with the zero vector");
    let untied = TransformerConfig { norm: Norm::Pre, tying: Tying::None, ..translator(&separate) };
    hugging_face(untied, &separate, "separate embeddings");

    let stack = stack(&joint);
    let biased = LanguageConfig { output_bias: true, ..language(stack.clone()) };
    let error = refusal(biased, &joint, ExportFormat::HuggingFace);
    assert!(error.contains("`output_bias`"), "{error}");
    // One error names all obstacles.
    let error = refusal(masked(stack), &joint, ExportFormat::HuggingFace);
    assert!(error.contains("`embedding_norm`") && error.contains("`activation`"), "{error}");
}

#[test]
fn other_families_are_rejected_by_name() {
    let joint = joint();
    for family in [Family::Recurrent, Family::Convolutional] {
        let mut recipe = Recipe::preset(Preset::Tiny);
        recipe.start_from_family(family);
        let config = EncoderDecoderConfig::from_recipe(&recipe, [joint.source.size(); 2]);
        for format in BOTH {
            let error = refusal(config.clone(), &joint, format);
            assert!(error.contains(&format!("a translator of the {family} family")), "{error}");
        }
    }
}
