//! Small models with initial weights: their output is meaningless but deterministic.

use std::fs;
use std::path::Path;

use heedful::data::labels::Labels;
use heedful::data::tokenizer::{Tokenizer, VocabularyKind, VocabularyOptions, WordCounts};
use heedful::decode::{MaxLength, SearchOptions};
use heedful::layers::AttentionScore;
use heedful::models::Model;
use heedful::models::transformer::TransformerConfig;
use heedful::models::{EncoderConfig, EncoderDecoderConfig};
use heedful::store::weights::Weights;
use heedful::tasks::ModelConfig;
use heedful::tasks::classify::{ClassifierConfig, Pooling};
use heedful::tasks::folder::{ModelFolder, TokenizerFiles};
use heedful::tasks::language::{LanguageConfig, TextShape};
use heedful::tasks::masked::MaskedConfig;
use heedful_grammar::Grammar;
use heedful_server::{ModelSpec, Server, ServerOptions};
use tempfile::TempDir;

pub(crate) fn tokenizer() -> Tokenizer {
    let options =
        VocabularyOptions { kind: VocabularyKind::Character, size: 700, ..VocabularyOptions::default() };
    let mut counts = WordCounts::new(&options);
    for phrase in Grammar::new().split(1, 300, 40).train {
        counts.add(&phrase.chinese);
        counts.add(&phrase.english);
    }
    counts.train().expect("a vocabulary")
}

/// Writes a model; another seed gives another model.
pub(crate) fn write(folder: &Path, config: ModelConfig, seed: u64) {
    write_with(folder, config, seed, None);
}

fn write_with(folder: &Path, config: ModelConfig, seed: u64, labels: Option<&Labels>) {
    fs::create_dir_all(folder).expect("a folder");
    let vocabulary = folder.join("tokenizer.json");
    tokenizer().save(&vocabulary).expect("room");
    let model = config.build(seed).expect("a good configuration");
    // Initial models are near uniform; larger weights give different outputs for different sentences.
    for param in model.params().iter().filter(|param| param.name() == "embedding.weight") {
        let sharper: Vec<f32> = param.to_vec().iter().map(|x| 3.0 * x).collect();
        param.set(&sharper);
    }
    let written = ModelFolder::create(folder, config, &TokenizerFiles::Joint(vocabulary), labels);
    written.expect("a folder").save(&Weights::of(model.params())).expect("room");
}

pub(crate) fn transformer() -> TransformerConfig {
    TransformerConfig { d_model: 32, d_ff: 64, ..TransformerConfig::tiny(tokenizer().size()) }
}

pub(crate) fn translator(folder: &Path, seed: u64) {
    write(folder, EncoderDecoderConfig::Transformer(transformer()).into(), seed);
}

pub(crate) fn classifier(folder: &Path) {
    let encoder = EncoderConfig::Transformer(transformer().encoder());
    let config = ClassifierConfig {
        labels: 2,
        pooling: Pooling::Attention,
        pooling_score: AttentionScore::Additive,
        pooler: false,
        label_bias: false,
        dropout: 0.0,
        label_smoothing: 0.0,
        encoder,
    };
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join("labels.json"), "[\"bad\", \"good\"]").expect("room");
    let labels = Labels::load(folder).expect("two labels");
    write_with(folder, ModelConfig::Classify(config), 4, Some(&labels));
}

pub(crate) fn language(folder: &Path) {
    let stack = transformer().decoder();
    write(
        folder,
        ModelConfig::Language(LanguageConfig {
            stack: stack.into(),
            text: TextShape::Lines,
            block: None,
            label_smoothing: 0.0,
            output_bias: false,
        }),
        4,
    );
}

pub(crate) fn masked(folder: &Path) {
    let stack = transformer().encoder();
    write(folder, ModelConfig::Masked(MaskedConfig { stack, label_smoothing: 0.0, output_bias: false }), 4);
}

/// The search options of tests: short outputs, because untrained models rarely predict `<eos>`.
pub(crate) fn search() -> SearchOptions {
    SearchOptions { max_length: MaxLength::Absolute(12), ..SearchOptions::default() }
}

pub(crate) fn options(models: Vec<ModelSpec>) -> ServerOptions {
    let address = "127.0.0.1:0".parse().expect("an address");
    ServerOptions { address, models, search: search(), ..ServerOptions::default() }
}

/// A server with a translator from Chinese to English, and its folder.
pub(crate) fn serving() -> (Server, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    translator(&folder.path().join("zh-en"), 4);
    let models = vec![ModelSpec::named("zh-en", folder.path().join("zh-en"))];
    (Server::start(options(models)).expect("a server"), folder)
}
