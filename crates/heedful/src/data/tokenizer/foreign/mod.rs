//! Vocabularies of other projects: SentencePiece's, BERT's WordPiece, GPT-2's byte-level BPE, as tokenizer.json.
//!
//! They promise what their original promises: the same ids for the same text, and text as their decoder gives it. Not
//! every text comes back. Special tokens are never matched in a text, and ids are those of plain text: what a model puts
//! around it is the model's affair.
//!
//! The file is kept as it was read, so it is written as it was. `tokenizers` has BPE and WordPiece, pre-tokenizers and
//! decoders; unigram models and SentencePiece's normalization are done here, as SentencePiece does them.

mod added;
pub(super) mod charsmap;
mod file;
mod model;
pub(super) mod normalize;
pub(super) mod spelling;
mod unigram;

use std::collections::BTreeSet;

use tokenizers::decoders::DecoderWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::{Decoder, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

pub(super) use self::file::NOT_IN_THE_MODEL;
use self::model::ForeignModel;
use self::normalize::{Beginning, Step, normalized};
use self::spelling::{Spelling, UNMATCHABLE};
use super::added::{AddedTokens, Part};
use super::pieces::Pieces;
use super::roles::SpecialRole;

/// A text normally shrinks by no more than this factor where it is normalized: 𝐀 has four bytes, and A has one.
const MOST_SHRINKING: usize = 4;
const UNKNOWN: &str = "\u{FFFD}";

pub(super) struct Foreign {
    json: String,
    steps: Vec<Step>,
    pre_tokenizers: Option<PreTokenizers>,
    model: ForeignModel,
    decoder: Option<DecoderWrapper>,
    spelling: Spelling,
    names: Vec<String>,
    /// How many of the names are not of tokens that were added as text.
    of_model: usize,
    special: BTreeSet<u32>,
    unknown: Option<u32>,
    pieces: Pieces,
    added: Option<AddedTokens>,
}

/// What splits a normalized text: of its own, and where it continues others.
struct PreTokenizers {
    of_text: PreTokenizerWrapper,
    continued: PreTokenizerWrapper,
}

impl Foreign {
    /// As it was read.
    pub(super) fn json(&self) -> &str {
        &self.json
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        self.encode_from(text, Beginning::OfText)
    }

    /// The ids of a text that continues others: a space before it is one, and none is added.
    pub(super) fn encode_continuation(&self, text: &str) -> Vec<u32> {
        let begins_a_word = self.spelling == Spelling::Meta && text.starts_with(' ');
        self.encode_from(text, if begins_a_word { Beginning::OfText } else { Beginning::Continued })
    }

    /// The ids of a line, with its end where the vocabulary has one.
    pub(super) fn encode_line(&self, line: &str) -> Vec<u32> {
        match self.spelling {
            Spelling::Bytes => self.encode(&format!("{line}\n")),
            Spelling::Meta | Spelling::Continued => self.encode(line),
        }
    }

    fn encode_from(&self, text: &str, beginning: Beginning) -> Vec<u32> {
        let text = normalized(&self.steps, text, beginning);
        self.encode_normalized(&text, beginning)
    }

    /// The ids of a normalized text.
    fn encode_normalized(&self, text: &str, beginning: Beginning) -> Vec<u32> {
        let parts = match &self.added {
            None => vec![Part::Text(text)],
            Some(added) => added.split(text),
        };
        let mut ids = Vec::new();
        for (number, part) in parts.into_iter().enumerate() {
            match part {
                Part::Text(text) if number == 0 => self.encode_part(text, beginning, &mut ids),
                Part::Text(text) => self.encode_part(text, Beginning::Continued, &mut ids),
                Part::Added(id) => ids.push(id),
            }
        }
        ids
    }

    /// Appends the ids of a part without added tokens.
    fn encode_part(&self, text: &str, beginning: Beginning, ids: &mut Vec<u32>) {
        let first = ids.len();
        let pre_tokenizer = self.pre_tokenizers.as_ref().map(|both| match beginning {
            Beginning::OfText => &both.of_text,
            Beginning::Continued => &both.continued,
        });
        match pre_tokenizer {
            None => self.model.encode(text, ids),
            Some(_) if text.is_empty() => {}
            Some(pre_tokenizer) => {
                let mut parts = PreTokenizedString::from(text);
                // None of the known ones has a way to fail.
                if pre_tokenizer.pre_tokenize(&mut parts).is_ok() {
                    for (part, ..) in parts.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
                        self.model.encode(part, ids);
                    }
                }
            }
        }
        let unknown = self.unknown.unwrap_or_default();
        // Pieces that text is split into and the model does not have; the ids of added tokens follow the model's.
        for id in &mut ids[first..] {
            *id = if (*id as usize) < self.of_model { *id } else { unknown };
        }
    }

    pub(super) fn decode(&self, ids: &[u32]) -> String {
        let ordinary = ids.iter().filter(|id| !self.special.contains(id));
        let names =
            ordinary.map(|&id| self.names.get(id as usize).map_or(UNKNOWN, String::as_str).to_owned());
        match &self.decoder {
            Some(decoder) => decoder.decode(names.collect()).unwrap_or_else(|_| UNKNOWN.to_owned()),
            None => names.collect(),
        }
    }

    pub(super) fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    pub(super) fn most_bytes_of_token(&self) -> usize {
        self.pieces.longest() * if self.steps.is_empty() { 1 } else { MOST_SHRINKING }
    }

    pub(super) fn shown(&self, id: u32) -> String {
        match self.names.get(id as usize) {
            None => format!("<no token {id}>"),
            Some(name) if self.special.contains(&id) => name.clone(),
            Some(name) => self.spelling.shown(name, self.pieces.bytes(id)),
        }
    }

    pub(super) fn special(&self, role: SpecialRole) -> Option<u32> {
        if role == SpecialRole::Unk && self.unknown.is_some() {
            return self.unknown;
        }
        let named = |name: &&str| self.special.iter().copied().find(|&id| self.names[id as usize] == **name);
        role.names().iter().find_map(named)
    }

    pub(super) fn is_special(&self, id: u32) -> bool {
        self.special.contains(&id)
    }

    /// The names that its tokens have in the original, in the order of their ids.
    pub(super) fn original_names(&self) -> Vec<String> {
        let original = |name: &String| match self.spelling {
            Spelling::Meta => name.trim_start_matches(UNMATCHABLE).to_owned(),
            Spelling::Bytes | Spelling::Continued => name.clone(),
        };
        self.names.iter().map(original).collect()
    }

    /// The id of a token by its name.
    pub(super) fn id_of(&self, name: &str) -> Option<u32> {
        self.names.iter().position(|other| other == name).map(|id| id as u32)
    }
}

impl std::fmt::Debug for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Foreign").field("spelling", &self.spelling).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
