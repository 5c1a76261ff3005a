//! Tokens that are added as text to a foreign vocabulary.
//!
//! | format | in the file | matched as |
//! |---|---|---|
//! | `▁` (SentencePiece) | `LibreOffice`, normalized | `▁LibreOffice` |
//! | | `自动驾驶`, not normalized | `自动驾驶`: scripts without spaces have no `▁` between words |
//! | bytes (GPT-2) | ` LibreOffice`, `自动驾驶` | the same |
//! | `##` (BERT) | `LibreOffice`, normalized, a single word | `libreoffice` between other words |

use serde_json::{Value, json};

use super::Foreign;
use super::file::Added;
use super::normalize::{Position, Step, normalized};
use super::piece_format::PieceFormat;
use crate::data::tokenizer::added::MatchMode;
use crate::data::tokenizer::rules::is_unspaced;

impl Added {
    /// The form that it matches in a normalized text, and where.
    pub(super) fn form(&self, format: PieceFormat, steps: &[Step]) -> Result<(String, MatchMode), String> {
        let position = match (format, self.normalized) {
            (_, true) => Position::TextStart,
            (PieceFormat::SentencePiece, false) => Position::Continuation,
            (_, false) if steps.is_empty() => Position::Continuation,
            _ => {
                return Err(format!(
                    "its added token `{}` is matched before text is normalized",
                    self.content
                ));
            }
        };
        let mode = if self.single_word { MatchMode::WholeWord } else { MatchMode::Anywhere };
        Ok((normalized(steps, &self.content, position), mode))
    }
}

/// The name of an added token, which decoders convert to text.
pub(super) fn added_name<'t>(format: PieceFormat, content: &'t str, form: &'t str) -> &'t str {
    match format {
        PieceFormat::SentencePiece => form,
        PieceFormat::ByteLevel | PieceFormat::WordPiece => content,
    }
}

impl Foreign {
    /// The same vocabulary with added tokens, which must be new.
    pub(in crate::data::tokenizer) fn with_added_tokens(
        &self,
        tokens: &[&String],
    ) -> Result<Foreign, String> {
        self.with_entries(tokens.iter().zip(self.names.len()..).map(|(token, id)| self.entry(token, id)))
    }

    /// The same vocabulary with special tokens of these names appended.
    pub(in crate::data::tokenizer) fn with_special(&self, names: &[String]) -> Result<Foreign, String> {
        self.with_entries(names.iter().zip(self.names.len()..).map(|(name, id)| {
            json!({"id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true})
        }))
    }

    fn with_entries(&self, entries: impl Iterator<Item = Value>) -> Result<Foreign, String> {
        let mut file: Value = serde_json::from_str(self.json()).map_err(|error| error.to_string())?;
        match &mut file["added_tokens"] {
            Value::Array(added) => added.extend(entries),
            other => *other = entries.collect(),
        }
        Foreign::read(&format!("{file}\n"))
    }

    /// The pieces of a text that is to become one token.
    pub(in crate::data::tokenizer) fn pieces_of_added(&self, token: &str) -> Vec<u32> {
        self.encode_normalized(&self.form(token).1, Position::Continuation)
    }

    /// The name that a token has if it is added.
    pub(in crate::data::tokenizer) fn name_of_added(&self, token: &str) -> String {
        let (content, form) = self.form(token);
        added_name(self.format, &content, &form).to_owned()
    }

    /// The content of a token in the file, and the form that it matches.
    fn form(&self, token: &str) -> (String, String) {
        let is_unspaced = token.starts_with(is_unspaced);
        let content = match self.format {
            PieceFormat::ByteLevel if !is_unspaced => format!(" {token}"),
            _ => token.to_owned(),
        };
        let position = match self.format {
            PieceFormat::SentencePiece if is_unspaced => Position::Continuation,
            _ => Position::TextStart,
        };
        let form = normalized(&self.steps, &content, position);
        (content, form)
    }

    fn entry(&self, token: &str, id: usize) -> Value {
        let is_normalized = !(self.format == PieceFormat::SentencePiece && token.starts_with(is_unspaced));
        json!({"id": id, "content": self.form(token).0, "single_word": self.format == PieceFormat::WordPiece,
            "lstrip": false, "rstrip": false, "normalized": is_normalized, "special": false})
    }
}
