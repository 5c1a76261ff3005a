//! The models of the race: random weights of two sizes, or a trained model.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use heedful::data::shortlist::Shortlist;
use heedful::data::tokenizer::{VocabularyOptions, WordCounts};
use heedful::models::transformer::TransformerConfig;
use heedful::models::{EncoderDecoderConfig, Model as _};
use heedful::store::weights::Weights;
use heedful::tasks::ModelConfig;
use heedful::tasks::folder::{ModelFolder, TokenizerFiles};
use heedful::tasks::translate::Translator;
use heedful::tensor::Precision;
use serde_json::json;
use tempfile::TempDir;

use super::process::Process;
use super::work;

pub(super) const VOCABULARY: usize = 32_000;

/// A size of the models with random weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// The paper's base model: 6 + 6 layers, d 512.
    Base,
    /// 3 + 3 layers, d 256.
    Small,
}

impl Size {
    fn config(self) -> TransformerConfig {
        match self {
            Size::Base => TransformerConfig::base(VOCABULARY),
            Size::Small => TransformerConfig::small(VOCABULARY),
        }
    }
}

/// A model on disk, for both sides.
pub(super) struct Model {
    /// As heedful trained it.
    pub(super) folder: PathBuf,
    /// As `heedful quantize --to int8` converts it.
    quantized: PathBuf,
    /// In CTranslate2's format, with the shortlist as its vocabulary map.
    pub(super) converted: PathBuf,
    /// Whether it has a shortlist.
    pub(super) has_lists: bool,
    _temp: TempDir,
}

impl Model {
    /// Writes a model with random weights.
    pub(super) fn random(size: Size) -> Result<Model> {
        let temp = tempfile::tempdir()?;
        let folder = temp.path().join("model");
        fs::create_dir(&folder)?;
        // Nothing is tokenized, but a model folder needs a vocabulary.
        let mut counts = WordCounts::new(&VocabularyOptions::default());
        counts.add("a model with random weights knows no words");
        let vocabulary = temp.path().join("tokenizer.json");
        counts.train()?.save(&vocabulary)?;
        let config = ModelConfig::from(EncoderDecoderConfig::Transformer(size.config()));
        let model = config.build(1)?;
        let written = ModelFolder::create(&folder, config, &TokenizerFiles::Joint(vocabulary), None)?;
        written.save(&Weights::of(model.params()))?;
        Model::converted(folder, Some(&work::shortlist(VOCABULARY)), temp)
    }

    /// A trained model.
    pub(super) fn trained(folder: &Path, translator: &Translator) -> Result<Model> {
        let lists = translator.shortlist();
        Model::converted(folder.to_owned(), lists.map(|lists| &**lists), tempfile::tempdir()?)
    }

    fn converted(folder: PathBuf, lists: Option<&Shortlist>, temp: TempDir) -> Result<Model> {
        let converted = temp.path().join("ctranslate2");
        fs::create_dir(&converted)?;
        // In a separate process, because conversion takes memory.
        let mut peer = Process::converter()?;
        peer.ask(&json!({"op": "convert", "folder": folder, "into": converted}))?;
        let quantized = temp.path().join("int8");
        fs::create_dir(&quantized)?;
        let opened = ModelFolder::open(&folder)?;
        let params = opened.load()?;
        opened.copy_to(&quantized)?.save_narrow(params.params(), Precision::Int8)?;
        if let Some(map) = lists.map(vocabulary_map) {
            for format in fs::read_dir(&converted)? {
                fs::write(format?.path().join("vmap.txt"), &map)?;
            }
        }
        Ok(Model { folder, quantized, converted, has_lists: lists.is_some(), _temp: temp })
    }

    /// The folder that heedful opens for a compute type: on both sides the weights are stored in the compute
    /// type.
    pub(super) fn ours(&self, compute: &str) -> &Path {
        if compute == Precision::Int8.to_string() { &self.quantized } else { &self.folder }
    }
}

/// A shortlist as CTranslate2's vocabulary map: a line for the tokens of all sources, which begins with a tab, and
/// a line for each source token.
fn vocabulary_map(lists: &Shortlist) -> String {
    let line = |source: &str, tokens: &[u32]| {
        let names: Vec<String> = tokens.iter().map(|token| format!("t{token}")).collect();
        format!("{source}\t{}\n", names.join(" "))
    };
    let frequent = lists.tokens(&[], []);
    let of_token = |source: u32| {
        let mut tokens = lists.tokens(&[source], []);
        tokens.retain(|token| frequent.binary_search(token).is_err());
        line(&format!("t{source}"), &tokens)
    };
    (0..lists.source_vocabulary() as u32).map(of_token).fold(line("", &frequent), |map, line| map + &line)
}

/// The sentences of a file, tokenized for a model, and their translations, if there is a file of them.
pub(super) fn sentences(
    translator: &Translator,
    file: &Path,
    references: Option<&Path>,
) -> Result<Vec<(Vec<u32>, String)>> {
    let read =
        |path: &Path| fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()));
    let (text, references) = (read(file)?, references.map(read).transpose()?.unwrap_or_default());
    let references = references.lines().chain(std::iter::repeat(""));
    let pairs = text.lines().zip(references).map(|(line, other)| (translator.encode(line), other.to_owned()));
    let pairs: Vec<(Vec<u32>, String)> = pairs.filter(|(source, _)| !source.is_empty()).collect();
    if pairs.is_empty() {
        bail!("{} has no sentences", file.display());
    }
    Ok(pairs)
}
