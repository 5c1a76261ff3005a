//! Sizes of the demo: data, model, training.

use std::path::Path;

use heedful::data::tokenizer::VocabularyKind;
use heedful::recipe::{Averaging, Preset, Recipe, ScheduleKind};
use heedful::tensor::DType;
use heedful::tensor::cpu::isa::{self, Isa};
use heedful_grammar::LengthClass;

use super::direction::Direction;
use super::phrases::TextFiles;

/// The sizes of a demo.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    /// Phrases to sample for training, validation and test, before too long ones are removed.
    pub(super) train: usize,
    pub(super) validation: usize,
    pub(super) test: usize,
    pub(super) longest: LengthClass,
    d_model: usize,
    d_ff: usize,
    heads: usize,
    encoder_layers: usize,
    decoder_layers: usize,
    batch_tokens: usize,
    steps: u64,
    peak: f64,
    warmup: u64,
    /// The exact match that a Transformer must reach on the test set; less is an error.
    pub(super) required_exact_match: f64,
}

/// 26 seconds on two cores with AMX, 115 with AVX2 (in f32).
pub(super) const NORMAL: Plan = Plan {
    train: 200_000,
    validation: 200,
    test: 1000,
    longest: LengthClass::Longest,
    d_model: 128,
    d_ff: 256,
    heads: 4,
    // A second layer does not improve accuracy, and collects the phrase in 一, so that “an” attends only to
    // 一.
    encoder_layers: 1,
    decoder_layers: 2,
    batch_tokens: 1024,
    steps: 1600,
    peak: 3e-3,
    warmup: 100,
    required_exact_match: 0.98,
};

/// A few seconds, for `--quick` and tests: short phrases only.
pub(super) const QUICK: Plan = Plan {
    train: 60_000,
    longest: LengthClass::Short,
    d_model: 64,
    d_ff: 128,
    decoder_layers: 1,
    steps: 300,
    peak: 8e-3,
    warmup: 30,
    required_exact_match: 0.0,
    ..NORMAL
};

/// Half a minute for each of two recurrent networks: all lengths, narrow.
pub(super) const BOTTLENECK: Plan = Plan {
    train: 100_000,
    test: 2000,
    d_model: 96,
    steps: 600,
    peak: 6e-3,
    warmup: 50,
    required_exact_match: 0.0,
    ..NORMAL
};

/// Maximum size of the vocabulary; the grammar has fewer words and characters.
const VOCABULARY: usize = 2000;
/// Number of validations in a run, and of its log lines.
const VALIDATIONS: u64 = 8;
const LOG_LINES: u64 = 20;

impl Plan {
    pub(super) fn width(&self) -> usize {
        self.d_model
    }

    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// The recipe for a Transformer.
    pub(super) fn recipe(&self, direction: Direction, text: &TextFiles, out: &Path, seed: u64) -> Recipe {
        let mut recipe = Recipe::preset(Preset::Tiny);
        let Recipe { data, vocabulary, model, training, validation, checkpoint, output, .. } = &mut recipe;
        [data.src, data.tgt] = text.train(direction).map(|file| vec![file]);
        [data.valid_src, data.valid_tgt] = text.validation(direction).map(|file| vec![file]);
        // English words and Chinese characters, so that attention maps have one row or column per word.
        (vocabulary.kind, vocabulary.size) = (VocabularyKind::Word, VOCABULARY);
        (model.d_model, model.d_ff, model.heads) = (self.d_model, self.d_ff, self.heads);
        (model.encoder_layers, model.decoder_layers) = (self.encoder_layers, self.decoder_layers);
        // bf16 on CPUs with AMX tiles, else f32.
        training.compute = if isa::current() == Isa::Amx { DType::Bf16 } else { DType::F32 };
        training.seed = seed;
        training.batch_tokens = self.batch_tokens;
        training.steps = Some(self.steps);
        training.schedule = ScheduleKind::Cosine;
        (training.lr, training.min_lr, training.warmup) = (self.peak, 1e-5, self.warmup);
        validation.every = self.steps.div_ceil(VALIDATIONS);
        checkpoint.every = self.steps;
        (checkpoint.keep_last, checkpoint.keep_best) = (1, 1);
        checkpoint.average = Averaging::None;
        output.out = Some(out.to_owned());
        output.log_every = self.steps.div_ceil(LOG_LINES);
        output.tensorboard = false;
        recipe
    }
}
