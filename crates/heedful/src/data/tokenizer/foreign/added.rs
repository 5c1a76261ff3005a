//! Tokens that are added to a vocabulary of another project as text.
//!
//! | spelling | in the file | found as |
//! |---|---|---|
//! | `▁` (SentencePiece) | `LibreOffice`, normalized | `▁LibreOffice` |
//! | | `自动驾驶`, not normalized | `自动驾驶`: scripts without spaces have no `▁` between words |
//! | bytes (GPT-2) | ` LibreOffice`, `自动驾驶` | the same |
//! | `##` (BERT) | `LibreOffice`, normalized, a single word | `libreoffice` between other words |

use serde_json::{Value, json};

use super::Foreign;
use super::file::Added;
use super::normalize::{Beginning, Step, normalized};
use super::spelling::Spelling;
use crate::data::tokenizer::added::Found;
use crate::data::tokenizer::rules::is_unspaced;

impl Added {
    /// What it is found by in a normalized text, and where.
    pub(super) fn form(&self, spelling: Spelling, steps: &[Step]) -> Result<(String, Found), String> {
        let beginning = match (spelling, self.normalized) {
            (_, true) => Beginning::OfText,
            (Spelling::Meta, false) => Beginning::Continued,
            (_, false) if steps.is_empty() => Beginning::Continued,
            _ => {
                return Err(format!("its added token `{}` is found before text is normalized", self.content));
            }
        };
        let found = if self.single_word { Found::AsWord } else { Found::Anywhere };
        Ok((normalized(steps, &self.content, beginning), found))
    }
}

/// The name of an added token, from which decoders make its text.
pub(super) fn added_name<'t>(spelling: Spelling, content: &'t str, form: &'t str) -> &'t str {
    match spelling {
        Spelling::Meta => form,
        Spelling::Bytes | Spelling::Continued => content,
    }
}

impl Foreign {
    /// The same vocabulary with more tokens, which it does not have yet.
    pub(in crate::data::tokenizer) fn with_added(&self, tokens: &[&String]) -> Result<Foreign, String> {
        self.with_entries(tokens.iter().zip(self.names.len()..).map(|(token, id)| self.entry(token, id)))
    }

    /// The same vocabulary with special tokens of these names after its last.
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
        self.encode_normalized(&self.form(token).1, Beginning::Continued)
    }

    /// The name that a token would have.
    pub(in crate::data::tokenizer) fn name_of_added(&self, token: &str) -> String {
        let (content, form) = self.form(token);
        added_name(self.spelling, &content, &form).to_owned()
    }

    /// What stands in the file for a token, and what it is found by.
    fn form(&self, token: &str) -> (String, String) {
        let is_unspaced = token.starts_with(is_unspaced);
        let content = match self.spelling {
            Spelling::Bytes if !is_unspaced => format!(" {token}"),
            _ => token.to_owned(),
        };
        let beginning = match self.spelling {
            Spelling::Meta if is_unspaced => Beginning::Continued,
            _ => Beginning::OfText,
        };
        let form = normalized(&self.steps, &content, beginning);
        (content, form)
    }

    fn entry(&self, token: &str, id: usize) -> Value {
        let is_normalized = !(self.spelling == Spelling::Meta && token.starts_with(is_unspaced));
        json!({"id": id, "content": self.form(token).0, "single_word": self.spelling == Spelling::Continued,
            "lstrip": false, "rstrip": false, "normalized": is_normalized, "special": false})
    }
}
