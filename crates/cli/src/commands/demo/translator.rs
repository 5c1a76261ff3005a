//! The trained model as it lies in its folder, with its vocabularies.

use std::path::Path;

use anyhow::Result;
use heedful::decode::{Hypothesis, SearchOptions, attend, search};
use heedful::folder::ModelFolder;
use heedful::layers::{AttentionMap, Kind};
use heedful::tensor::DType;
use heedful::text::tokenizer::Tokenizers;
use heedful::transformer::Transformer;

/// A model that reads and writes text.
pub(super) struct Translator {
    model: Transformer,
    tokenizers: Tokenizers,
    options: SearchOptions,
}

/// A translation with all that the decoder looked at in the source.
pub(super) struct Traced {
    pub(super) output: String,
    /// What was read, token by token.
    pub(super) columns: Vec<String>,
    /// What was said, token by token, and the end.
    pub(super) rows: Vec<String>,
    /// One for each decoder layer.
    pub(super) maps: Vec<AttentionMap>,
}

impl Translator {
    /// Loads what the training has left.
    pub(super) fn load(folder: &Path, compute: DType) -> Result<Translator> {
        let model = ModelFolder::open(folder)?.load()?;
        // One hypothesis is enough: a phrase has one translation.
        let options = SearchOptions { beam: 1, compute, ..SearchOptions::default() };
        Ok(Translator { model, tokenizers: Tokenizers::load(folder)?, options })
    }

    /// The best translation of each source.
    pub(super) fn translate(&self, sources: &[&str]) -> Result<Vec<String>> {
        let sources: Vec<Vec<u32>> =
            sources.iter().map(|source| self.tokenizers.source.encode(source)).collect();
        let said = self.search(&sources)?;
        Ok(said.iter().map(|tokens| self.tokenizers.target.decode(tokens)).collect())
    }

    /// The best translation of one source, and how it came about.
    pub(super) fn trace(&self, source: &str) -> Result<Traced> {
        let Tokenizers { source: reader, target: writer } = &self.tokenizers;
        let read = reader.encode(source);
        let said = self.search(std::slice::from_ref(&read))?.remove(0);
        let maps = attend(&self.model, &read, &said, &self.options)?;
        let mut rows: Vec<String> = said.iter().map(|&id| label(&writer.piece(id))).collect();
        rows.push("<eos>".to_owned());
        Ok(Traced {
            output: writer.decode(&said),
            columns: read.iter().map(|&id| label(&reader.piece(id))).collect(),
            rows,
            maps: maps.into_iter().filter(|map| map.place.kind == Kind::Cross).collect(),
        })
    }

    fn search(&self, sources: &[Vec<u32>]) -> Result<Vec<Vec<u32>>> {
        let found = search(&self.model, sources, &self.options)?;
        let best = |hypotheses: Vec<Hypothesis>| {
            hypotheses.into_iter().next().map(|best| best.tokens).unwrap_or_default()
        };
        Ok(found.into_iter().map(best).collect())
    }
}

/// A piece as people write it: the space before a word is not shown.
fn label(piece: &str) -> String {
    match piece.strip_prefix('▁') {
        Some(word) if !word.is_empty() => word.to_owned(),
        _ => piece.to_owned(),
    }
}
