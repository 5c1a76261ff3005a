//! Tokens that were added to a vocabulary after it was learned: each occurrence in a text is one token.
//!
//! ```text
//! native vocabularies, SentencePiece, GPT-2    with the space before it, if its script has spaces: ` LibreOffice`
//! BERT                                         as a whole word
//! ```
//!
//! They are matched before text is split into pieces, the longest first. In tokenizer.json they are in
//! `added_tokens`, and not special.

use std::fs;
use std::path::Path;

use regex::{Regex, RegexBuilder};
use rustc_hash::{FxHashMap, FxHashSet};

use super::TokenizerError;

/// Maximum number of added tokens: more words than this are better covered by subwords.
const MAX_TOKENS: usize = 10_000;
/// Maximum number of bytes of an added token.
const MAX_TOKEN_BYTES: usize = 256;
/// Maximum size of the compiled regular expression that matches them.
const MAX_PATTERN_BYTES: usize = 256 << 20;

/// Where an added token is matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchMode {
    Anywhere,
    /// Only where no letter, digit or underscore is adjacent.
    WholeWord,
}

/// Added tokens, by the text that they match.
pub(super) struct AddedTokens {
    ids: FxHashMap<Box<str>, (u32, MatchMode)>,
    pattern: Regex,
}

/// A segment of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Segment<'t> {
    Text(&'t str),
    Added(u32),
}

impl AddedTokens {
    /// From texts and ids; `None` if there are none.
    pub(super) fn new(tokens: Vec<(String, u32, MatchMode)>) -> Result<Option<AddedTokens>, String> {
        if tokens.is_empty() {
            return Ok(None);
        }
        if tokens.len() > MAX_TOKENS {
            return Err(format!("it has {} added tokens, and at most {MAX_TOKENS} are read", tokens.len()));
        }
        if let Some((text, ..)) =
            tokens.iter().find(|(text, ..)| text.is_empty() || text.len() > MAX_TOKEN_BYTES)
        {
            return Err(format!(
                "its added token `{text}` is empty or has more than {MAX_TOKEN_BYTES} bytes"
            ));
        }
        let mut texts: Vec<&str> = tokens.iter().map(|(text, ..)| text.as_str()).collect();
        // The longer of two tokens with a common prefix comes first.
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let pattern = texts.iter().map(|text| regex::escape(text)).collect::<Vec<_>>().join("|");
        let pattern = RegexBuilder::new(&pattern).size_limit(MAX_PATTERN_BYTES).build();
        let pattern = pattern.map_err(|_| "its added tokens are too many to match".to_owned())?;
        let ids = tokens.into_iter().map(|(text, id, mode)| (text.into(), (id, mode))).collect();
        Ok(Some(AddedTokens { ids, pattern }))
    }

    /// The segments of a text that was prepared for the vocabulary.
    pub(super) fn split<'t>(&self, text: &'t str) -> Vec<Segment<'t>> {
        let mut segments = Vec::new();
        let mut from = 0;
        for found in self.pattern.find_iter(text) {
            let Some(&(id, mode)) = self.ids.get(found.as_str()) else { continue };
            let is_whole_word = || {
                let is_word_character = |character: char| character.is_alphanumeric() || character == '_';
                !text[..found.start()].ends_with(is_word_character)
                    && !text[found.end()..].starts_with(is_word_character)
            };
            if mode == MatchMode::WholeWord && !is_whole_word() {
                continue;
            }
            if from < found.start() {
                segments.push(Segment::Text(&text[from..found.start()]));
            }
            segments.push(Segment::Added(id));
            from = found.end();
        }
        if from < text.len() {
            segments.push(Segment::Text(&text[from..]));
        }
        segments
    }
}

/// Reads tokens to add, one per line. Surrounding white space, empty lines and duplicates are ignored.
pub(crate) fn read_tokens(path: &Path) -> Result<Vec<String>, TokenizerError> {
    let file = || path.display().to_string();
    let bytes = fs::read(path).map_err(|error| TokenizerError::Read { file: file(), error })?;
    let wrong = |reason: String| TokenizerError::AddedTokens { file: file(), reason };
    let text = String::from_utf8(bytes).map_err(|error| wrong(format!("it is not UTF-8 ({error})")))?;
    let mut seen = FxHashSet::default();
    let mut tokens = Vec::new();
    for (line, token) in (1..).zip(text.lines().map(str::trim)).filter(|(_, token)| !token.is_empty()) {
        if token.len() > MAX_TOKEN_BYTES || token.contains(char::is_control) {
            return Err(wrong(format!(
                "line {line} has more than {MAX_TOKEN_BYTES} bytes, or control characters: write one token per line"
            )));
        }
        if seen.insert(token) {
            tokens.push(token.to_owned());
        }
    }
    match tokens.len() {
        0 => Err(wrong("it has no tokens: write one per line".to_owned())),
        1..=MAX_TOKENS => Ok(tokens),
        more => {
            Err(wrong(format!("it has {more} tokens, and at most {MAX_TOKENS} are added to a vocabulary")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(mode: MatchMode) -> AddedTokens {
        let tokens = [(" Libre", 7), (" LibreOffice", 8), ("a.b", 9)];
        let tokens = tokens.iter().map(|(text, id)| ((*text).to_owned(), *id, mode)).collect();
        AddedTokens::new(tokens).expect("few and short").expect("some")
    }

    #[test]
    fn the_longest_token_is_matched_and_the_rest_is_text() {
        use Segment::{Added, Text};
        let split = |text| added(MatchMode::Anywhere).split(text);
        assert_eq!(split(" use LibreOffice or Libre"), [Text(" use"), Added(8), Text(" or"), Added(7)]);
        assert_eq!(split(" LibreOffices a.b"), [Added(8), Text("s "), Added(9)]);
        assert_eq!(split("axb"), [Text("axb")]);
        assert!(split("").is_empty());
        let whole = added(MatchMode::WholeWord);
        assert_eq!(whole.split("xa.b, a.b"), [Text("xa.b, "), Added(9)]);
        assert_eq!(whole.split("a.b."), [Added(9), Text(".")]);
    }

    #[test]
    fn token_files_are_read_and_errors_name_the_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("tokens.txt");
        let read = |text: &[u8]| {
            fs::write(&path, text).expect("room on the disk");
            read_tokens(&path).map_err(|error| error.to_string())
        };
        assert_eq!(
            read("  LibreOffice \n\n自动驾驶\nLibreOffice\n".as_bytes()),
            Ok(vec!["LibreOffice".to_owned(), "自动驾驶".to_owned()])
        );
        for (text, named) in [
            (&b"\n \n"[..], "no tokens"),
            (b"a\nb\x07", "line 2"),
            (&[b'x'; 300], "line 1"),
            (b"\xff", "UTF-8"),
        ] {
            let error = read(text).expect_err("bad tokens");
            assert!(error.contains(named) && error.contains("tokens.txt"), "{error}");
        }
    }
}
