//! Foreign vocabularies, of other projects, as tokenizer.json: SentencePiece, BERT's WordPiece, GPT-2's
//! byte-level BPE.
//!
//! They give the same ids and the same decoded text as the original implementation, so decoding does not
//! restore every text. Special tokens are never matched in a text. Ids are those of the text alone; the model
//! adds its special tokens around them.
//!
//! The file is kept in memory and written back unchanged. The `tokenizers` crate provides BPE, WordPiece,
//! pre-tokenizers and decoders; unigram models and SentencePiece's normalization are implemented here, to
//! match SentencePiece exactly.

mod added;
pub(super) mod charsmap;
mod file;
mod model;
pub(super) mod normalize;
pub(super) mod piece_format;
mod unigram;

use std::collections::BTreeSet;

use tokenizers::decoders::DecoderWrapper;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::{Decoder, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

pub(super) use self::file::NOT_IN_THE_MODEL;
use self::model::ForeignModel;
use self::normalize::{Position, Step, normalized};
use self::piece_format::{PieceFormat, UNMATCHABLE};
use super::added::{AddedTokens, Segment};
use super::pieces::Pieces;
use super::roles::SpecialRole;

/// Normalization normally shrinks a text by no more than this factor, in bytes: 𝐀 has four bytes, and A has
/// one.
const MAX_SHRINK_FACTOR: usize = 4;
const UNKNOWN: &str = "\u{FFFD}";

pub(super) struct Foreign {
    json: String,
    steps: Vec<Step>,
    pre_tokenizers: Option<PreTokenizers>,
    model: ForeignModel,
    decoder: Option<DecoderWrapper>,
    format: PieceFormat,
    names: Vec<String>,
    /// The number of tokens of the model; tokens that were added as text follow them.
    model_size: usize,
    special: BTreeSet<u32>,
    unknown: Option<u32>,
    pieces: Pieces,
    added: Option<AddedTokens>,
}

/// The pre-tokenizers at the start of a text, and for its continuation.
struct PreTokenizers {
    at_text_start: PreTokenizerWrapper,
    continuation: PreTokenizerWrapper,
}

impl Foreign {
    /// The file as it was read.
    pub(super) fn json(&self) -> &str {
        &self.json
    }

    pub(super) fn encode(&self, text: &str) -> Vec<u32> {
        self.encode_from(text, Position::TextStart)
    }

    /// The ids of a text that continues other text: no space is inserted before it.
    pub(super) fn encode_continuation(&self, text: &str) -> Vec<u32> {
        let begins_a_word = self.format == PieceFormat::SentencePiece && text.starts_with(' ');
        self.encode_from(text, if begins_a_word { Position::TextStart } else { Position::Continuation })
    }

    /// The ids of a line, with its line end if the vocabulary has one.
    pub(super) fn encode_line(&self, line: &str) -> Vec<u32> {
        match self.format {
            PieceFormat::ByteLevel => self.encode(&format!("{line}\n")),
            PieceFormat::SentencePiece | PieceFormat::WordPiece => self.encode(line),
        }
    }

    fn encode_from(&self, text: &str, position: Position) -> Vec<u32> {
        let text = normalized(&self.steps, text, position);
        self.encode_normalized(&text, position)
    }

    /// The ids of a normalized text.
    fn encode_normalized(&self, text: &str, position: Position) -> Vec<u32> {
        let segments = match &self.added {
            None => vec![Segment::Text(text)],
            Some(added) => added.split(text),
        };
        let mut ids = Vec::new();
        for (number, segment) in segments.into_iter().enumerate() {
            match segment {
                Segment::Text(text) if number == 0 => self.encode_segment(text, position, &mut ids),
                Segment::Text(text) => self.encode_segment(text, Position::Continuation, &mut ids),
                Segment::Added(id) => ids.push(id),
            }
        }
        ids
    }

    /// Appends the ids of a segment without added tokens.
    fn encode_segment(&self, text: &str, position: Position, ids: &mut Vec<u32>) {
        let first = ids.len();
        let pre_tokenizer = self.pre_tokenizers.as_ref().map(|both| match position {
            Position::TextStart => &both.at_text_start,
            Position::Continuation => &both.continuation,
        });
        match pre_tokenizer {
            None => self.model.encode(text, ids),
            Some(_) if text.is_empty() => {}
            Some(pre_tokenizer) => {
                let mut splits = PreTokenizedString::from(text);
                // The supported pre-tokenizers cannot fail.
                if pre_tokenizer.pre_tokenize(&mut splits).is_ok() {
                    for (split, ..) in splits.get_splits(OffsetReferential::Normalized, OffsetType::Byte) {
                        self.model.encode(split, ids);
                    }
                }
            }
        }
        let unknown = self.unknown.unwrap_or_default();
        // Pieces of the segmentation that are not tokens of the model become unknown.
        for id in &mut ids[first..] {
            *id = if (*id as usize) < self.model_size { *id } else { unknown };
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

    pub(super) fn max_bytes_per_token(&self) -> usize {
        self.pieces.longest() * if self.steps.is_empty() { 1 } else { MAX_SHRINK_FACTOR }
    }

    pub(super) fn display(&self, id: u32) -> String {
        match self.names.get(id as usize) {
            None => format!("<no token {id}>"),
            Some(name) if self.special.contains(&id) => name.clone(),
            Some(name) => self.format.display(name, self.pieces.bytes(id)),
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

    /// The original names of its tokens, in the order of their ids.
    pub(super) fn original_names(&self) -> Vec<String> {
        let original = |name: &String| match self.format {
            PieceFormat::SentencePiece => name.trim_start_matches(UNMATCHABLE).to_owned(),
            PieceFormat::ByteLevel | PieceFormat::WordPiece => name.clone(),
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
        f.debug_struct("Foreign").field("format", &self.format).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
