//! What is translated, and by which model.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use heedful::decode::{MaxLength, SearchOptions, search};
use heedful::family::ModelConfig;
use heedful::folder::{ModelFolder, TokenizerFiles};
use heedful::grammar::Grammar;
use heedful::tensor::DType;
use heedful::text::tokenizer::{VocabularyOptions, WordCounts};
use heedful::text::{BOS, EOS};
use heedful::transformer::TransformerConfig;
use heedful::translator::Translator;
use heedful::weights::Weights;
use tempfile::TempDir;

/// Tokens that an output may have beyond its source.
pub(super) const BEYOND: usize = 10;
/// Sentences made by the grammar.
const SENTENCES: usize = 2000;

pub(super) struct Work {
    pub(super) name: String,
    pub(super) texts: Vec<String>,
    pub(super) sources: Vec<Vec<u32>>,
    pub(super) options: SearchOptions,
    translator: Translator,
    folder: PathBuf,
    /// How many requests a second of measuring holds, roughly.
    pace: usize,
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
        Work::made("demo", config, 500)
    }

    /// The paper's base model.
    pub(super) fn base_size() -> Result<Work> {
        Work::made("base", TransformerConfig::base, 30)
    }

    fn made(name: &str, config: impl Fn(usize) -> TransformerConfig, pace: usize) -> Result<Work> {
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
        let config = ModelConfig::Transformer(config(tokenizer.size()));
        let model = config.build(1)?;
        let folder = ModelFolder::create(made.path(), config, &TokenizerFiles::Joint(vocabulary))?;
        folder.save(&Weights::of(model.params()))?;
        let texts = phrases.into_iter().map(|phrase| phrase.chinese).collect();
        Work::new(name, made.path().to_owned(), texts, pace, Some(made))
    }

    /// A trained model and a file of sentences.
    pub(super) fn read(model: &Path, file: &Path) -> Result<Work> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let texts = text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
        Work::new("model", model.to_owned(), texts, 200, None)
    }

    fn new(
        name: &str,
        folder: PathBuf,
        texts: Vec<String>,
        pace: usize,
        made: Option<TempDir>,
    ) -> Result<Work> {
        let translator = Translator::open(&folder)?;
        let sources = texts.iter().map(|text| translator.encode(text)).collect();
        let options = SearchOptions {
            bos: BOS,
            eos: EOS,
            compute: DType::Bf16,
            max_length: MaxLength::Relative { factor: 1.0, plus: BEYOND },
            ..SearchOptions::default()
        };
        Ok(Work { name: name.to_owned(), texts, sources, options, translator, folder, pace, _made: made })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many requests a measurement takes: about as long for every number of clients.
    pub(super) fn requests(&self, clients: usize) -> usize {
        (2 * self.pace * clients.min(8)).max(2 * clients)
    }

    /// The same sentences as `count` requests hold, offline.
    pub(super) fn translate(&self, count: usize) -> Result<usize> {
        let texts: Vec<&str> = self.texts.iter().map(String::as_str).cycle().take(count).collect();
        Ok(self.translator.translate(&texts, &self.options)?.len())
    }

    /// Best outputs in f32, as tokens.
    pub(super) fn outputs(&self, sources: &[Vec<u32>]) -> Result<Vec<Vec<u32>>> {
        let options = SearchOptions { compute: DType::F32, ..self.options.clone() };
        let found = search(self.translator.model(), sources, &options)?;
        Ok(found.into_iter().map(|mut found| found.remove(0).tokens).collect())
    }
}
