//! Text to token ids and back. With a vocabulary of heedful's own losslessly: `decode(encode(x)) == x` for every line,
//! whatever its script.
//!
//! Such a vocabulary has [`special`] tokens, the 256 bytes, and pieces learned from a corpus. What no
//! piece covers is encoded as bytes. The `rules` define where text is split into words; the `tokenizers` crate has the
//! models that split words into pieces, and the file format, so that tokenizer.json also works in Python.
//!
//! A vocabulary of another project (`foreign`) gives the ids and the text that its original gives; [`SentencePiece`]
//! makes a tokenizer.json of a SentencePiece model.

mod added;
mod caching;
mod count;
mod error;
mod exported;
mod foreign;
mod own;
mod pieces;
mod roles;
mod rules;
mod running;
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
pub(crate) use self::exported::Surroundings;
pub use self::roles::SpecialRole;
pub use self::rules::{Boundaries, NormalizationForm};
pub use self::sentencepiece::SentencePiece;
pub use self::sides::VocabularyError;
pub(crate) use self::sides::{
    GrownTokenizers, JOINT_FILE, JOINT_PIECES, SIDE_PIECES, SOURCE_FILE, TARGET_FILE,
};
pub use self::sides::{Sharing, Tokenizers};
pub use self::train::{VocabularyKind, VocabularyOptions};

use self::foreign::Foreign;
use self::own::Own;
use self::pieces::Pieces;
use self::rules::Rules;
use super::special;
use crate::store::durable::replace;

/// The vocabulary of one side, or of both.
pub struct Tokenizer {
    origin: Origin,
}

/// A vocabulary with more tokens than it had.
pub(crate) struct WithAdded {
    pub tokenizer: Tokenizer,
    /// For each new token, in the order of their ids, the pieces that its text had before.
    pub(crate) pieces: Vec<Vec<u32>>,
}

enum Origin {
    Own(Box<Own>),
    Foreign(Box<Foreign>),
}

impl Tokenizer {
    /// Reads a tokenizer.json that [`Tokenizer::save`] wrote, or one of another project.
    pub fn load(path: &Path) -> Result<Tokenizer, TokenizerError> {
        let file = path.display().to_string();
        let bytes = fs::read(path).map_err(|error| TokenizerError::Read { file, error })?;
        Tokenizer::from_bytes(path, &bytes)
    }

    /// As [`Tokenizer::load`], for models that are trained from nothing: they know special tokens by heedful's own ids.
    pub(crate) fn load_own(path: &Path) -> Result<Tokenizer, TokenizerError> {
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
        // The crate panics where its decoder is not JSON.
        let json = serde_json::from_slice::<serde_json::Value>(bytes)
            .map_err(|error| unreadable(error.to_string()))?;
        // Only heedful's own vocabularies split text by a pattern: where one does and is not, that is what differs.
        if json["pre_tokenizer"]["type"] == "Split" {
            drop(json);
            let pipeline = Pipeline::from_bytes(bytes).map_err(|error| unreadable(error.to_string()))?;
            return match Own::from_pipeline(pipeline) {
                Ok(own) => Ok(Tokenizer { origin: Origin::Own(Box::new(own)) }),
                Err(difference) => Err(TokenizerError::Foreign { file: file(), difference }),
            };
        }
        let text = str::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
        Tokenizer::foreign(text).map_err(|difference| TokenizerError::Foreign { file: file(), difference })
    }

    /// Reads a tokenizer.json of another project; an error says what heedful does not do.
    fn foreign(json: &str) -> Result<Tokenizer, String> {
        Ok(Tokenizer { origin: Origin::Foreign(Box::new(Foreign::read(json)?)) })
    }

    /// Combines rules and a trained model.
    fn new(model: ModelWrapper, rules: Rules) -> Tokenizer {
        Tokenizer { origin: Origin::Own(Box::new(Own::new(model, rules))) }
    }

    /// Writes tokenizer.json. The same vocabulary gives the same bytes.
    pub fn save(&self, path: &Path) -> Result<(), TokenizerError> {
        let json = self.to_json();
        replace(path, |file| std::io::Write::write_all(file, json.as_bytes()))
            .map_err(|error| TokenizerError::Write { file: path.display().to_string(), error })
    }

    /// What [`Tokenizer::save`] writes.
    pub fn to_json(&self) -> String {
        match &self.origin {
            Origin::Own(own) => {
                let mut json = own.pipeline.to_string(false).expect("a vocabulary is strings and numbers");
                json.push('\n');
                json
            }
            Origin::Foreign(foreign) => foreign.json().to_owned(),
        }
    }

    /// The vocabulary with more tokens, each with the pieces that it had so far; those that are one token already are left out, and
    /// so are those for which `is_known` holds.
    pub(crate) fn with_added(
        &self,
        tokens: &[String],
        is_known: impl Fn(&str) -> bool,
    ) -> Result<WithAdded, TokenizerError> {
        let new: Vec<&String> =
            tokens.iter().filter(|token| !self.has_as_one(token) && !is_known(token)).collect();
        if let Some(token) = new.iter().find(|token| self.id_of(token).is_some_and(|id| self.is_special(id)))
        {
            return Err(TokenizerError::SpecialToken { token: (*token).clone() });
        }
        let pieces = new.iter().map(|token| self.pieces_of(token)).collect();
        let origin = match &self.origin {
            Origin::Own(own) => own.with_added(&new).map(|own| Origin::Own(Box::new(own))),
            Origin::Foreign(foreign) => foreign.with_added(&new).map(|new| Origin::Foreign(Box::new(new))),
        };
        let origin = origin.map_err(|reason| TokenizerError::NotAdded { reason })?;
        Ok(WithAdded { tokenizer: Tokenizer { origin }, pieces })
    }

    /// The vocabulary of a model that has more rows than tokens: special tokens of these names follow its last.
    pub(crate) fn with_rows(self, names: &[String]) -> Result<Tokenizer, TokenizerError> {
        let with_special = match &self.origin {
            _ if names.is_empty() => return Ok(self),
            Origin::Foreign(foreign) => foreign.with_special(names),
            Origin::Own(_) => {
                Err(format!("it is of heedful's own, and its model has {} more rows", names.len()))
            }
        };
        let foreign = with_special.map_err(|reason| TokenizerError::NotAdded { reason })?;
        Ok(Tokenizer { origin: Origin::Foreign(Box::new(foreign)) })
    }

    /// Whether a token to be added is one already.
    pub(crate) fn has_as_one(&self, token: &str) -> bool {
        let by_name = match &self.origin {
            Origin::Own(own) => own.pipeline.token_to_id(token),
            Origin::Foreign(foreign) => foreign.id_of(&foreign.name_of_added(token)),
        };
        let is_text = |id: u32| !self.is_special(id);
        by_name.is_some_and(is_text) || matches!(self.pieces_of(token)[..], [id] if is_text(id))
    }

    /// The pieces of a text that is to become one token.
    fn pieces_of(&self, token: &str) -> Vec<u32> {
        match &self.origin {
            Origin::Own(own) => own.encode(token),
            Origin::Foreign(foreign) => foreign.pieces_of_added(token),
        }
    }

    /// Whether the vocabulary is of another project: then not every text comes back as it was.
    pub(crate) fn is_foreign(&self) -> bool {
        matches!(self.origin, Origin::Foreign(_))
    }

    /// The ids of a text, without `<bos>` and `<eos>`. For many texts, a [`CachingTokenizer`] is faster.
    pub fn encode(&self, text: &str) -> Vec<u32> {
        match &self.origin {
            Origin::Own(own) => own.encode(text),
            Origin::Foreign(foreign) => foreign.encode(text),
        }
    }

    /// The text of ids; special tokens are skipped. Bytes that are not UTF-8, and ids that are not in the vocabulary,
    /// become U+FFFD: a model may generate either.
    pub fn decode(&self, ids: &[u32]) -> String {
        match &self.origin {
            Origin::Own(own) => own.decode(ids),
            Origin::Foreign(foreign) => foreign.decode(ids),
        }
    }

    /// The number of tokens, special tokens and bytes included.
    pub fn size(&self) -> usize {
        self.pieces().count()
    }

    /// The most bytes of a text that one token stands for.
    pub(crate) fn most_bytes_of_token(&self) -> usize {
        match &self.origin {
            Origin::Own(own) => own.pieces.longest() * own.rules.most_shrinking(),
            Origin::Foreign(foreign) => foreign.most_bytes_of_token(),
        }
    }

    /// A token in readable form: spaces as `▁`, bytes as `<0xE4>`.
    pub fn piece(&self, id: u32) -> String {
        match &self.origin {
            Origin::Own(own) => own.pieces.shown(id),
            Origin::Foreign(foreign) => foreign.shown(id),
        }
    }

    /// The id of a special token, if the vocabulary has one of this purpose.
    pub fn special(&self, role: SpecialRole) -> Option<u32> {
        match (&self.origin, role) {
            (Origin::Foreign(foreign), role) => foreign.special(role),
            (Origin::Own(_), SpecialRole::Pad) => Some(special::PAD),
            (Origin::Own(_), SpecialRole::Bos) => Some(special::BOS),
            (Origin::Own(_), SpecialRole::Eos) => Some(special::EOS),
            // The mask token is `<unk>`'s row.
            (Origin::Own(_), SpecialRole::Unk | SpecialRole::Mask) => Some(special::UNK),
            (Origin::Own(_), SpecialRole::Cls | SpecialRole::Sep) => None,
        }
    }

    /// Whether a token is special: no text has it.
    pub(crate) fn is_special(&self, id: u32) -> bool {
        match &self.origin {
            Origin::Own(_) => (id as usize) < special::NAMES.len(),
            Origin::Foreign(foreign) => foreign.is_special(id),
        }
    }

    /// The id of a token by the name that it has in the file.
    pub(crate) fn id_of(&self, name: &str) -> Option<u32> {
        match &self.origin {
            Origin::Own(own) => own.pipeline.token_to_id(name),
            Origin::Foreign(foreign) => foreign.id_of(name),
        }
    }

    /// The names of all tokens, in the order of their ids, as other programs know them.
    pub fn names(&self) -> Vec<String> {
        match &self.origin {
            Origin::Own(own) => {
                let name = |id| own.pipeline.id_to_token(id).expect("its ids have no gap");
                (0..self.size() as u32).map(name).collect()
            }
            Origin::Foreign(foreign) => foreign.original_names(),
        }
    }

    /// The index of the word that each token belongs to; words are separated by white space in the decoded text.
    /// Special tokens and pure white space belong to none.
    pub fn words(&self, ids: &[u32]) -> Vec<Option<usize>> {
        let pieces = self.pieces();
        word_index::of_tokens(ids.iter().map(|&id| pieces.bytes(id)))
    }

    /// As [`Tokenizer::words`], for display: in scripts without spaces every token counts as a word.
    pub fn display_words(&self, ids: &[u32]) -> Vec<Option<usize>> {
        let pieces = self.pieces();
        word_index::for_display(ids.iter().map(|&id| pieces.bytes(id)))
    }

    fn pieces(&self) -> &Pieces {
        match &self.origin {
            Origin::Own(own) => &own.pieces,
            Origin::Foreign(foreign) => foreign.pieces(),
        }
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Tokenizer");
        shown.field("size", &self.size());
        match &self.origin {
            Origin::Own(own) => shown.field("rules", &own.rules),
            Origin::Foreign(foreign) => shown.field("foreign", foreign),
        };
        shown.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod originals;
#[cfg(test)]
mod tests;
