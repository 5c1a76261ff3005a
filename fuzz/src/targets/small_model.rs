//! Models and vocabularies of a few kilobytes, created by the library itself.

use std::fs;
use std::path::Path;

use heedful::data::labels::Labels;
use heedful::data::tokenizer::{Tokenizer, VocabularyKind, VocabularyOptions, WordCounts};
use heedful::layers::AttentionScore;
use heedful::models::transformer::TransformerConfig;
use heedful::models::{EncoderConfig, EncoderDecoderConfig};
use heedful::store::weights::Weights;
use heedful::tasks::ModelConfig;
use heedful::tasks::classify::{ClassifierConfig, Pooling};
use heedful::tasks::folder::{ModelFolder, TokenizerFiles};
use heedful::tasks::language::{LanguageConfig, TextShape};

pub(super) const LINES: [&str; 10] = [
    "A dog runs on the green field.",
    "The dog and the cat run.",
    "Two cats sleep, 12 dogs run!",
    "Ein Hund läuft über die grüne Wiese.",
    "Der Hund und die Katze laufen.",
    "一只狗在草地上跑。",
    "两只猫在睡觉，狗在跑。",
    "Mr. Smith said: “no”.",
    "the the the dog dog cat",
    "x < y && z > 1",
];

pub(super) fn tokenizer(kind: VocabularyKind) -> Tokenizer {
    let options = VocabularyOptions { kind, size: 360, ..VocabularyOptions::default() };
    let mut counts = WordCounts::new(&options);
    for line in LINES {
        counts.add(line);
    }
    counts.train().expect("a vocabulary of ten lines")
}

fn transformer(vocabulary: usize) -> TransformerConfig {
    TransformerConfig {
        d_model: 8,
        d_ff: 8,
        heads: 2,
        encoder_layers: 1,
        decoder_layers: 1,
        ..TransformerConfig::tiny(vocabulary)
    }
}

pub(super) fn translator(folder: &Path) {
    let vocabulary = tokenizer(VocabularyKind::Character).size();
    write(folder, EncoderDecoderConfig::Transformer(transformer(vocabulary)).into(), None);
}

pub(super) fn language(folder: &Path) {
    let stack = transformer(tokenizer(VocabularyKind::Character).size()).decoder();
    let config = LanguageConfig {
        block: None,
        stack: stack.into(),
        text: TextShape::Lines,
        label_smoothing: 0.0,
        output_bias: false,
    };
    write(folder, ModelConfig::Language(config), None);
}

pub(super) fn classifier(folder: &Path) {
    let stack = transformer(tokenizer(VocabularyKind::Character).size()).encoder();
    let config = ClassifierConfig {
        labels: 2,
        pooling: Pooling::Attention,
        pooling_score: AttentionScore::Additive,
        pooler: false,
        label_bias: false,
        dropout: 0.0,
        label_smoothing: 0.0,
        encoder: EncoderConfig::Transformer(stack),
    };
    fs::create_dir_all(folder).expect("a folder");
    fs::write(folder.join("labels.json"), "[\"bad\", \"good\"]").expect("disk space");
    let labels = Labels::load(folder).expect("two labels");
    write(folder, ModelConfig::Classify(config), Some(&labels));
}

fn write(folder: &Path, config: ModelConfig, labels: Option<&Labels>) {
    fs::create_dir_all(folder).expect("a folder");
    let vocabulary = folder.join("tokenizer.json");
    tokenizer(VocabularyKind::Character).save(&vocabulary).expect("disk space");
    let model = config.build(4).expect("a valid configuration");
    let written = ModelFolder::create(folder, config, &TokenizerFiles::Joint(vocabulary), labels);
    written.expect("a folder").save(&Weights::of(model.params())).expect("disk space");
}
