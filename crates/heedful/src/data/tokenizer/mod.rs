//! Text to token ids and back. Native vocabularies, which heedful learns, are lossless:
//! `decode(encode(x)) == x` for every line in any script.
//!
//! A native vocabulary has [`special`] tokens, the 256 bytes, and pieces learned from a corpus. Text that no
//! piece covers is encoded as bytes. The `rules` define where text is split into words. The `tokenizers`
//! crate provides the models that split words into pieces, and the file format, so that tokenizer.json also
//! works in Python.
//!
//! A foreign vocabulary, of another project, gives the same ids and text as in the original implementation
//! (`foreign`). [`SentencePiece`] converts a SentencePiece model to tokenizer.json.

mod added;
mod caching;
mod count;
mod error;
mod export;
mod foreign;
mod multiline;
mod native;
mod pieces;
mod roles;
mod rules;
mod sentencepiece;
mod sides;
mod train;
mod word_index;

use std::fs;
use std::path::Path;

use tokenizers::Tokenizer as Pipeline;
use tokenizers::models::ModelWrapper;

pub(crate) use self::added::read_tokens;
pub use self::caching::CachingTokenizer;
pub use self::count::WordCounts;
pub use self::error::TokenizerError;
pub(crate) use self::export::TextTemplate;
pub use self::roles::SpecialRole;
pub use self::rules::{Boundaries, NormalizationForm};
pub use self::sentencepiece::SentencePiece;
pub use self::sides::VocabularyError;
pub(crate) use self::sides::{
    ExtendedTokenizers, JOINT_FILE, JOINT_PIECES, SIDE_PIECES, SOURCE_FILE, TARGET_FILE,
};
pub use self::sides::{Sharing, Tokenizers};
pub use self::train::{VocabularyKind, VocabularyOptions};

use self::foreign::Foreign;
use self::native::Native;
use self::pieces::Pieces;
use self::rules::Rules;
use super::special;
use crate::store::durable::replace;

/// The vocabulary of one side, or of both.
pub struct Tokenizer {
    origin: Origin,
}

/// A vocabulary with added tokens.
pub(crate) struct ExtendedTokenizer {
    pub tokenizer: Tokenizer,
    /// For each added token, in the order of their ids, the pieces that its text had before.
    pub(crate) pieces: Vec<Vec<u32>>,
}

enum Origin {
    Native(Box<Native>),
    Foreign(Box<Foreign>),
}

impl Tokenizer {
    /// Reads a tokenizer.json that [`Tokenizer::save`] wrote, or one of another project.
    pub fn load(path: &Path) -> Result<Tokenizer, TokenizerError> {
        let file = path.display().to_string();
        let bytes = fs::read(path).map_err(|error| TokenizerError::Read { file, error })?;
        Tokenizer::from_bytes(path, &bytes)
    }

    /// As [`Tokenizer::load`], for models that are trained from scratch: they require heedful's ids of
    /// special tokens.
    pub(crate) fn load_native(path: &Path) -> Result<Tokenizer, TokenizerError> {
        let tokenizer = Tokenizer::load(path)?;
        if !tokenizer.is_foreign() {
            return Ok(tokenizer);
        }
        let difference = "its special tokens are not the first four of the vocabulary".to_owned();
        Err(TokenizerError::Foreign { file: path.display().to_string(), difference })
    }

    /// As [`Tokenizer::load`], for the bytes of a file that was read from `path`.
    pub fn from_bytes(path: &Path, bytes: &[u8]) -> Result<Tokenizer, TokenizerError> {
        let file = || path.display().to_string();
        let unreadable = |reason| TokenizerError::NotATokenizer { file: file(), reason };
        // Parsed here first, because the crate panics on a decoder that is not valid JSON.
        let json = serde_json::from_slice::<serde_json::Value>(bytes)
            .map_err(|error| unreadable(error.to_string()))?;
        // Only native vocabularies split text by a pattern: an error names the difference of a file with
        // other patterns.
        if json["pre_tokenizer"]["type"] == "Split" {
            drop(json);
            let pipeline = Pipeline::from_bytes(bytes).map_err(|error| unreadable(error.to_string()))?;
            return match Native::from_pipeline(pipeline) {
                Ok(native) => Ok(Tokenizer { origin: Origin::Native(Box::new(native)) }),
                Err(difference) => Err(TokenizerError::Foreign { file: file(), difference }),
            };
        }
        let text = str::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
        Tokenizer::foreign(text).map_err(|difference| TokenizerError::Foreign { file: file(), difference })
    }

    /// Reads a tokenizer.json of another project; an error names what heedful does not support.
    fn foreign(json: &str) -> Result<Tokenizer, String> {
        Ok(Tokenizer { origin: Origin::Foreign(Box::new(Foreign::read(json)?)) })
    }

    /// A native tokenizer of rules and a trained model.
    fn new(model: ModelWrapper, rules: Rules) -> Tokenizer {
        Tokenizer { origin: Origin::Native(Box::new(Native::new(model, rules))) }
    }

    /// Writes tokenizer.json. The same vocabulary gives the same bytes.
    pub fn save(&self, path: &Path) -> Result<(), TokenizerError> {
        let json = self.to_json();
        replace(path, |file| std::io::Write::write_all(file, json.as_bytes()))
            .map_err(|error| TokenizerError::Write { file: path.display().to_string(), error })
    }

    /// The content that [`Tokenizer::save`] writes.
    pub fn to_json(&self) -> String {
        match &self.origin {
            Origin::Native(native) => {
                let mut json = native.pipeline.to_string(false).expect("a vocabulary is strings and numbers");
                json.push('\n');
                json
            }
            Origin::Foreign(foreign) => foreign.json().to_owned(),
        }
    }

    /// The vocabulary with added tokens, and the pieces that each of them had before. Tokens that the
    /// vocabulary already has, and those for which `is_known` is true, are skipped.
    pub(crate) fn with_added_tokens(
        &self,
        tokens: &[String],
        is_known: impl Fn(&str) -> bool,
    ) -> Result<ExtendedTokenizer, TokenizerError> {
        let new: Vec<&String> =
            tokens.iter().filter(|token| !self.has_token(token) && !is_known(token)).collect();
        if let Some(token) = new.iter().find(|token| self.id_of(token).is_some_and(|id| self.is_special(id)))
        {
            return Err(TokenizerError::SpecialToken { token: (*token).clone() });
        }
        let pieces = new.iter().map(|token| self.pieces_of(token)).collect();
        let origin = match &self.origin {
            Origin::Native(native) => {
                native.with_added_tokens(&new).map(|native| Origin::Native(Box::new(native)))
            }
            Origin::Foreign(foreign) => {
                foreign.with_added_tokens(&new).map(|new| Origin::Foreign(Box::new(new)))
            }
        };
        let origin = origin.map_err(|reason| TokenizerError::NotAdded { reason })?;
        Ok(ExtendedTokenizer { tokenizer: Tokenizer { origin }, pieces })
    }

    /// The vocabulary with special tokens of these names appended, for a model with more embedding rows than
    /// tokens.
    pub(crate) fn with_special_tokens(self, names: &[String]) -> Result<Tokenizer, TokenizerError> {
        let with_special = match &self.origin {
            _ if names.is_empty() => return Ok(self),
            Origin::Foreign(foreign) => foreign.with_special(names),
            Origin::Native(_) => {
                Err(format!("it is a native vocabulary, and its model has {} more rows", names.len()))
            }
        };
        let foreign = with_special.map_err(|reason| TokenizerError::NotAdded { reason })?;
        Ok(Tokenizer { origin: Origin::Foreign(Box::new(foreign)) })
    }

    /// Whether a text is a single token already.
    pub(crate) fn has_token(&self, token: &str) -> bool {
        let by_name = match &self.origin {
            Origin::Native(native) => native.pipeline.token_to_id(token),
            Origin::Foreign(foreign) => foreign.id_of(&foreign.name_of_added(token)),
        };
        let is_text = |id: u32| !self.is_special(id);
        by_name.is_some_and(is_text) || matches!(self.pieces_of(token)[..], [id] if is_text(id))
    }

    /// The pieces of a text that is to become one token.
    fn pieces_of(&self, token: &str) -> Vec<u32> {
        match &self.origin {
            Origin::Native(native) => native.encode(token),
            Origin::Foreign(foreign) => foreign.pieces_of_added(token),
        }
    }

    /// Whether the vocabulary is of another project: then encoding may not be lossless.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.origin, Origin::Foreign(_))
    }

    /// The ids of a text, without `<bos>` and `<eos>`. For many texts, a [`CachingTokenizer`] is faster.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        match &self.origin {
            Origin::Native(native) => native.encode(text),
            Origin::Foreign(foreign) => foreign.encode(text),
        }
    }

    /// The text of ids; special tokens are skipped. Bytes that are not UTF-8, and ids that are not in the
    /// vocabulary, become U+FFFD: a model may generate either.
    pub fn decode(&self, ids: &[u32]) -> String {
        match &self.origin {
            Origin::Native(native) => native.decode(ids),
            Origin::Foreign(foreign) => foreign.decode(ids),
        }
    }

    /// The number of tokens, special tokens and bytes included.
    pub fn size(&self) -> usize {
        self.pieces().count()
    }

    /// Maximum number of bytes of text that one token represents.
    pub(crate) fn max_bytes_per_token(&self) -> usize {
        match &self.origin {
            Origin::Native(native) => native.pieces.longest() * native.rules.max_shrink_factor(),
            Origin::Foreign(foreign) => foreign.max_bytes_per_token(),
        }
    }

    /// A token in readable form: spaces as `▁`, bytes as `<0xE4>`.
    pub fn piece(&self, id: u32) -> String {
        match &self.origin {
            Origin::Native(native) => native.pieces.display(id),
            Origin::Foreign(foreign) => foreign.display(id),
        }
    }

    /// The id of the special token with this role, if the vocabulary has one.
    pub fn special(&self, role: SpecialRole) -> Option<u32> {
        match (&self.origin, role) {
            (Origin::Foreign(foreign), role) => foreign.special(role),
            (Origin::Native(_), SpecialRole::Pad) => Some(special::PAD),
            (Origin::Native(_), SpecialRole::Bos) => Some(special::BOS),
            (Origin::Native(_), SpecialRole::Eos) => Some(special::EOS),
            // `<unk>` serves as the mask token.
            (Origin::Native(_), SpecialRole::Unk | SpecialRole::Mask) => Some(special::UNK),
            (Origin::Native(_), SpecialRole::Cls | SpecialRole::Sep) => None,
        }
    }

    /// Whether a token is special: encoding a text never yields it.
    pub(crate) fn is_special(&self, id: u32) -> bool {
        match &self.origin {
            Origin::Native(_) => (id as usize) < special::NAMES.len(),
            Origin::Foreign(foreign) => foreign.is_special(id),
        }
    }

    /// The id of a token by its name in the file.
    pub(crate) fn id_of(&self, name: &str) -> Option<u32> {
        match &self.origin {
            Origin::Native(native) => native.pipeline.token_to_id(name),
            Origin::Foreign(foreign) => foreign.id_of(name),
        }
    }

    /// The names of all tokens in other programs, in the order of their ids.
    pub fn names(&self) -> Vec<String> {
        match &self.origin {
            Origin::Native(native) => {
                let name = |id| native.pipeline.id_to_token(id).expect("its ids have no gap");
                (0..self.size() as u32).map(name).collect()
            }
            Origin::Foreign(foreign) => foreign.original_names(),
        }
    }

    /// The index of the word that each token belongs to; words are separated by white space in the decoded
    /// text. Special tokens and pure white space belong to no word.
    pub fn words(&self, ids: &[u32]) -> Vec<Option<usize>> {
        let pieces = self.pieces();
        word_index::word_indices(ids.iter().map(|&id| pieces.bytes(id)))
    }

    /// As [`Tokenizer::words`], for display: in scripts without spaces every token counts as a word.
    pub fn display_words(&self, ids: &[u32]) -> Vec<Option<usize>> {
        let pieces = self.pieces();
        word_index::for_display(ids.iter().map(|&id| pieces.bytes(id)))
    }

    fn pieces(&self) -> &Pieces {
        match &self.origin {
            Origin::Native(native) => &native.pieces,
            Origin::Foreign(foreign) => foreign.pieces(),
        }
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Tokenizer");
        shown.field("size", &self.size());
        match &self.origin {
            Origin::Native(native) => shown.field("rules", &native.rules),
            Origin::Foreign(foreign) => shown.field("foreign", foreign),
        };
        shown.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod reference_cases;
#[cfg(test)]
mod tests;
