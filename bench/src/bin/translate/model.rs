//! The models that are raced: random weights of two sizes, or a trained one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
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
use super::work::LENGTH;

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

    /// How much its weights are used when sentences of [`LENGTH`] tokens become as long outputs.
    pub(super) fn use_of_weights(self) -> UseOfWeights {
        let TransformerConfig { d_model: d, d_ff, encoder_layers, decoder_layers, .. } = self.config();
        UseOfWeights {
            // Self attention and feed-forward; every decoder layer also multiplies the encoder's output, once.
            once: encoder_layers * (4 * d * d + 2 * d * d_ff) + decoder_layers * 2 * d * d,
            // Self attention, query and output of cross attention, feed-forward; the projection.
            each_step: decoder_layers * (6 * d * d + 2 * d * d_ff) + VOCABULARY * d,
        }
    }
}

/// Numbers of weights by how often they are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct UseOfWeights {
    /// For the source.
    once: usize,
    /// For every token that is generated.
    each_step: usize,
}

impl UseOfWeights {
    /// All that are multiplied.
    pub(super) fn weights(self) -> usize {
        self.once + self.each_step
    }

    /// Weights that are read for a batch.
    pub(super) fn reads(self) -> usize {
        self.once + LENGTH * self.each_step
    }

    /// Multiplications and additions for a batch of so many sentences with so many hypotheses each.
    pub(super) fn operations(self, batch: usize, beam: usize) -> usize {
        2 * LENGTH * batch * (self.once + beam * self.each_step)
    }
}

/// A model on disk, for both sides.
pub(super) struct Model {
    /// As heedful has trained it.
    pub(super) folder: PathBuf,
    /// As `heedful quantize --to int8` has made it.
    quantized: PathBuf,
    /// As CTranslate2 reads it.
    pub(super) converted: PathBuf,
    _made: TempDir,
}

impl Model {
    /// Writes a model with random weights.
    pub(super) fn random(size: Size) -> Result<Model> {
        let made = tempfile::tempdir()?;
        let folder = made.path().join("model");
        fs::create_dir(&folder)?;
        // Nothing is tokenized here, but a folder needs a vocabulary.
        let mut counts = WordCounts::new(&VocabularyOptions::default());
        counts.add("a model with random weights knows no words");
        let vocabulary = made.path().join("tokenizer.json");
        counts.train()?.save(&vocabulary)?;
        let config = ModelConfig::from(EncoderDecoderConfig::Transformer(size.config()));
        let model = config.build(1)?;
        let written = ModelFolder::create(&folder, config, &TokenizerFiles::Joint(vocabulary), None)?;
        written.save(&Weights::of(model.params()))?;
        Model::converted(folder, made)
    }

    /// A trained model.
    pub(super) fn trained(folder: &Path) -> Result<Model> {
        Model::converted(folder.to_owned(), tempfile::tempdir()?)
    }

    fn converted(folder: PathBuf, made: TempDir) -> Result<Model> {
        let converted = made.path().join("ctranslate2");
        fs::create_dir(&converted)?;
        // In a process that ends: conversion takes memory.
        let mut peer = Process::converter()?;
        peer.ask(&json!({"op": "convert", "folder": folder, "into": converted}))?;
        let quantized = made.path().join("int8");
        fs::create_dir(&quantized)?;
        let opened = ModelFolder::open(&folder)?;
        let params = opened.load()?;
        opened.copy_to(&quantized)?.save_narrow(params.params(), Precision::Int8)?;
        Ok(Model { folder, quantized, converted, _made: made })
    }

    /// The folder that heedful opens for a compute type: each side has its weights on disk as it computes with them.
    pub(super) fn ours(&self, compute: &str) -> &Path {
        if compute == Precision::Int8.to_string() { &self.quantized } else { &self.folder }
    }
}

/// The sentences of a file as a model's tokens.
pub(super) fn sentences(model: &Path, file: &Path) -> Result<Vec<Vec<u32>>> {
    let translator = Translator::open(model)?;
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let sources = text.lines().map(|line| translator.encode(line));
    let sources: Vec<Vec<u32>> = sources.filter(|source| !source.is_empty()).collect();
    if sources.is_empty() {
        bail!("{} has no sentence", file.display());
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_counted_as_the_model_has_them() {
        let config = ModelConfig::from(EncoderDecoderConfig::Transformer(Size::Small.config()));
        let model = config.build(1).unwrap();
        // Matrices alone: biases and norms have one row.
        let shapes = model.params().shapes();
        let matrices = shapes.iter().filter(|(_, [rows, _])| *rows > 1);
        let weights: usize = matrices.map(|(_, [rows, width])| rows * width).sum();
        assert_eq!(Size::Small.use_of_weights().weights(), weights);
    }
}
