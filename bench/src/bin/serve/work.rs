//! What is translated, and by which model.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use heedful::data::tokenizer::{VocabularyOptions, WordCounts};
use heedful::decode::{MaxLength, SearchOptions, search};
use heedful::models::EncoderDecoderConfig;
use heedful::models::Model;
use heedful::models::transformer::TransformerConfig;
use heedful::store::weights::Weights;
use heedful::tasks::ModelConfig;
use heedful::tasks::folder::{ModelFolder, TokenizerFiles};
use heedful::tasks::translate::Translator;
use heedful::tensor::Precision;
use heedful_grammar::Grammar;
use tempfile::TempDir;

/// The most tokens of an output of an untrained model, which hardly ever generates `<eos>`.
const UNTRAINED_LONGEST: usize = 16;
/// The same for a trained model: more than it generates.
const TRAINED_LONGEST: usize = 150;
/// Sentences made by the grammar.
const SENTENCES: usize = 2000;
/// Sentences that are translated between two readings of the clock: enough to fill batches.
const CHUNK: usize = 400;

pub(super) struct Work {
    pub(super) name: String,
    pub(super) texts: Vec<String>,
    pub(super) sources: Vec<Vec<u32>>,
    pub(super) options: SearchOptions,
    /// The most tokens of an output, on both sides.
    pub(super) longest: usize,
    translator: Translator,
    folder: PathBuf,
    _made: Option<TempDir>,
}

impl Work {
    /// The demo's Transformer: d 128, one layer on each side.
    pub(super) fn demo_size() -> Result<Work> {
        let config = |vocabulary| TransformerConfig {
            d_model: 128,
            d_ff: 256,
            heads: 4,
            ..TransformerConfig::tiny(vocabulary)
        };
        Work::made("demo", config)
    }

    /// The paper's base model.
    pub(super) fn base_size() -> Result<Work> {
        Work::made("base", TransformerConfig::base)
    }

    fn made(name: &str, config: impl Fn(usize) -> TransformerConfig) -> Result<Work> {
        let made = tempfile::tempdir()?;
        let phrases = Grammar::new().split(1, SENTENCES, 40).train;
        let mut counts = WordCounts::new(&VocabularyOptions::default());
        for phrase in &phrases {
            counts.add(&phrase.chinese);
            counts.add(&phrase.english);
        }
        let tokenizer = counts.train()?;
        let vocabulary = made.path().join("tokenizer.json");
        tokenizer.save(&vocabulary)?;
        let config = ModelConfig::from(EncoderDecoderConfig::Transformer(config(tokenizer.size())));
        let model = config.build(1)?;
        let folder = ModelFolder::create(made.path(), config, &TokenizerFiles::Joint(vocabulary), None)?;
        folder.save(&Weights::of(model.params()))?;
        let texts = phrases.into_iter().map(|phrase| phrase.chinese).collect();
        Work::new(name, made.path().to_owned(), texts, UNTRAINED_LONGEST, Some(made))
    }

    /// A trained model and a file of sentences.
    pub(super) fn read(model: &Path, file: &Path) -> Result<Work> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let texts = text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
        Work::new("model", model.to_owned(), texts, TRAINED_LONGEST, None)
    }

    fn new(
        name: &str,
        folder: PathBuf,
        texts: Vec<String>,
        longest: usize,
        made: Option<TempDir>,
    ) -> Result<Work> {
        let translator = Translator::open(&folder)?;
        let sources = texts.iter().map(|text| translator.encode(text)).collect();
        let options = SearchOptions {
            compute: Some(Precision::Bf16),
            max_length: MaxLength::Absolute(longest),
            ..SearchOptions::default()
        };
        Ok(Work { name: name.to_owned(), texts, sources, options, longest, translator, folder, _made: made })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Translates the same sentences offline for about this many seconds; returns the seconds per sentence.
    pub(super) fn translate(&self, seconds: f64) -> Result<f64> {
        let (begin, mut done) = (Instant::now(), 0);
        for texts in self.texts.chunks(CHUNK).cycle() {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            done += self.translator.translate(&texts, &self.options)?.len();
            if begin.elapsed().as_secs_f64() >= seconds {
                break;
            }
        }
        Ok(begin.elapsed().as_secs_f64() / done.max(1) as f64)
    }

    /// Best outputs in f32, as tokens.
    pub(super) fn outputs(&self, sources: &[Vec<u32>]) -> Result<Vec<Vec<u32>>> {
        let options = SearchOptions { compute: Some(Precision::F32), ..self.options.clone() };
        let found = search(self.translator.model(), sources, &options)?;
        Ok(found.into_iter().map(|mut found| found.remove(0).tokens).collect())
    }
}
