//! Text to token ids and back, losslessly: `decode(encode(x)) == x` for every line, whatever its script.
//!
//! A vocabulary has [`special`](super::special) tokens, the 256 bytes, and pieces learned from a corpus. What no
//! piece covers is encoded as bytes. The `rules` define where text is split into words; the `tokenizers` crate has the
//! models that split words into pieces, and the file format, so that tokenizer.json also works in Python.

mod caching;
mod count;
mod error;
mod pieces;
mod rules;
mod running;
mod sides;
mod train;
mod word_index;

use std::fs;
use std::path::Path;

use tokenizers::models::ModelWrapper;
use tokenizers::{Model, Tokenizer as Pipeline};

pub use self::caching::CachingTokenizer;
pub use self::count::WordCounts;
pub use self::error::TokenizerError;
pub use self::rules::{Boundaries, NormalizationForm};
pub(crate) use self::sides::{JOINT_FILE, SOURCE_FILE, TARGET_FILE};
pub use self::sides::{Sharing, Tokenizers, VocabularyError};
pub use self::train::{VocabularyKind, VocabularyOptions};

use self::pieces::Pieces;
use self::rules::Rules;
use crate::store::durable::replace;

/// The vocabulary of one side, or of both.
pub struct Tokenizer {
    pipeline: Pipeline,
    rules: Rules,
    pieces: Pieces,
}

impl Tokenizer {
    /// Reads a tokenizer.json that [`Tokenizer::save`] wrote.
    pub fn load(path: &Path) -> Result<Tokenizer, TokenizerError> {
        let file = path.display().to_string();
        let bytes = fs::read(path).map_err(|error| TokenizerError::Read { file, error })?;
        Tokenizer::from_bytes(path, &bytes)
    }

    /// As [`Tokenizer::load`], for the bytes of a file that was read from `path`.
    pub(crate) fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Tokenizer, TokenizerError> {
        let file = || path.display().to_string();
        let foreign = |reason| TokenizerError::NotATokenizer { file: file(), reason };
        // The crate panics where its decoder is not JSON.
        serde_json::from_slice::<serde_json::Value>(bytes).map_err(|error| foreign(error.to_string()))?;
        let pipeline = Pipeline::from_bytes(bytes).map_err(|error| foreign(error.to_string()))?;
        Tokenizer::from_pipeline(pipeline)
            .map_err(|difference| TokenizerError::Foreign { file: file(), difference })
    }

    /// Writes tokenizer.json. The same vocabulary gives the same bytes.
    pub fn save(&self, path: &Path) -> Result<(), TokenizerError> {
        let json = self.to_json();
        replace(path, |file| std::io::Write::write_all(file, json.as_bytes()))
            .map_err(|error| TokenizerError::Write { file: path.display().to_string(), error })
    }

    /// What [`Tokenizer::save`] writes.
    pub fn to_json(&self) -> String {
        let mut json = self.pipeline.to_string(false).expect("a vocabulary is strings and numbers");
        json.push('\n');
        json
    }

    /// The ids of a text, without `<bos>` and `<eos>`. For many texts, a [`CachingTokenizer`] is faster.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let prepared = self.rules.prepare(text);
        for word in self.rules.words(&prepared) {
            self.encode_word(word, &mut ids);
        }
        ids
    }

    /// The text of ids; special tokens are skipped. Bytes that are not UTF-8, and ids that are not in the vocabulary,
    /// become U+FFFD: a model may generate either.
    pub fn decode(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids.iter().flat_map(|&id| self.pieces.bytes(id)).copied().collect();
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        self.rules.without_first_space(text)
    }

    /// The number of tokens, special tokens and bytes included.
    pub fn size(&self) -> usize {
        self.pieces.count()
    }

    /// The most bytes of a text that one token stands for.
    pub(crate) fn most_bytes_of_token(&self) -> usize {
        self.pieces.longest() * self.rules.most_shrinking()
    }

    /// A token in readable form: spaces as `▁`, bytes as `<0xE4>`.
    pub fn piece(&self, id: u32) -> String {
        self.pieces.shown(id)
    }

    /// The index of the word that each token belongs to; words are separated by white space in the decoded text.
    /// Special tokens and pure white space belong to none.
    pub fn words(&self, ids: &[u32]) -> Vec<Option<usize>> {
        word_index::of_tokens(ids.iter().map(|&id| self.pieces.bytes(id)))
    }

    /// As [`Tokenizer::words`], for display: in scripts without spaces every token counts as a word.
    pub fn display_words(&self, ids: &[u32]) -> Vec<Option<usize>> {
        word_index::for_display(ids.iter().map(|&id| self.pieces.bytes(id)))
    }

    /// Combines rules and a trained model.
    fn new(model: ModelWrapper, rules: Rules) -> Tokenizer {
        let mut pipeline = Pipeline::new(model);
        pipeline.with_normalizer(rules.normalizer()).expect("no added token needs normalizing");
        pipeline.with_pre_tokenizer(Some(rules.pre_tokenizer()));
        pipeline.with_decoder(Some(rules.decoder()));
        let pieces =
            Pieces::of(pipeline.get_model()).expect("a vocabulary that was just made has all its tokens");
        Tokenizer { pipeline, rules, pieces }
    }

    /// Accepts a pipeline if [`Tokenizer::new`] could have made it; otherwise returns what differs.
    fn from_pipeline(pipeline: Pipeline) -> Result<Tokenizer, String> {
        if pipeline.get_vocab_size(true) != pipeline.get_vocab_size(false)
            || !pipeline.get_added_vocabulary().is_empty()
        {
            return Err("it has added tokens".to_owned());
        }
        if pipeline.get_post_processor().is_some()
            || pipeline.get_padding().is_some()
            || pipeline.get_truncation().is_some()
        {
            return Err("it adds, pads or cuts tokens".to_owned());
        }
        let model = match pipeline.get_model() {
            ModelWrapper::BPE(model) if model.byte_fallback => {
                let mut model = model.clone();
                // `CachingTokenizer` caches words; the crate's own cache would store every word a second time.
                model.resize_cache(0);
                ModelWrapper::BPE(model)
            }
            ModelWrapper::Unigram(model) if model.byte_fallback() => {
                let mut model = model.clone();
                model.resize_cache(0);
                ModelWrapper::Unigram(model)
            }
            _ => return Err("its model does not encode unknown characters as bytes".to_owned()),
        };
        Pieces::of(&model)?;
        let written = [
            as_json(&pipeline.get_normalizer()),
            as_json(&pipeline.get_pre_tokenizer()),
            as_json(&pipeline.get_decoder()),
        ];
        let rules = Rules::all().map(|(normalization, cuts)| Rules::new(normalization, cuts)).find(|rules| {
            [as_json(&rules.normalizer()), as_json(&rules.pre_tokenizer()), as_json(&rules.decoder())]
                == written
        });
        match rules {
            Some(rules) => Ok(Tokenizer::new(model, rules)),
            None => Err("it normalizes or splits text by other rules".to_owned()),
        }
    }

    /// Appends the ids of one word.
    fn encode_word(&self, word: &str, ids: &mut Vec<u32>) {
        let tokens = self.pipeline.get_model().tokenize(word).expect("every byte has a token");
        ids.extend(tokens.iter().map(|token| token.id));
    }
}

/// A part of a pipeline as JSON, which can be compared.
fn as_json(part: &impl serde::Serialize) -> serde_json::Value {
    serde_json::to_value(part).expect("rules are strings and numbers")
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("size", &self.size())
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
