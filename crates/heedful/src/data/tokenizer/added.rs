//! Tokens that were added to a vocabulary after it was made: each is one token wherever a text has it.
//!
//! ```text
//! own vocabularies, SentencePiece, GPT-2    with the space before it, where its script has spaces: ` LibreOffice`
//! BERT                                      as a whole word, written as it is in the middle of a text
//! ```
//!
//! They are found before text is split into pieces, the longest first. In tokenizer.json they are among `added_tokens`, and are
//! not special.

use std::fs;
use std::path::Path;

use regex::{Regex, RegexBuilder};
use rustc_hash::{FxHashMap, FxHashSet};

use super::TokenizerError;

/// No more tokens are added to a vocabulary: learning new words one by one is what subwords are for.
const MOST: usize = 10_000;
/// The most bytes of one of them.
const LONGEST: usize = 256;
/// The most bytes of the pattern that finds them, compiled.
const LARGEST_PATTERN: usize = 256 << 20;

/// Where an added token is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Anywhere,
    /// Where no letter or digit stands beside it.
    AsWord,
}

/// Added tokens, by the text that they are found by.
pub(super) struct AddedTokens {
    ids: FxHashMap<Box<str>, (u32, Found)>,
    pattern: Regex,
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'t> {
    Text(&'t str),
    Added(u32),
}

impl AddedTokens {
    /// From texts and ids; `None` if there are none.
    pub(super) fn new(tokens: Vec<(String, u32, Found)>) -> Result<Option<AddedTokens>, String> {
        if tokens.is_empty() {
            return Ok(None);
        }
        if tokens.len() > MOST {
            return Err(format!("it has {} added tokens, and at most {MOST} are read", tokens.len()));
        }
        if let Some((text, ..)) = tokens.iter().find(|(text, ..)| text.is_empty() || text.len() > LONGEST) {
            return Err(format!("its added token `{text}` is empty or has more than {LONGEST} bytes"));
        }
        let mut texts: Vec<&str> = tokens.iter().map(|(text, ..)| text.as_str()).collect();
        // Of two that begin alike, the longer one.
        texts.sort_by_key(|text| std::cmp::Reverse(text.len()));
        let pattern = texts.iter().map(|text| regex::escape(text)).collect::<Vec<_>>().join("|");
        let pattern = RegexBuilder::new(&pattern).size_limit(LARGEST_PATTERN).build();
        let pattern = pattern.map_err(|_| "its added tokens are too many to look for".to_owned())?;
        let ids = tokens.into_iter().map(|(text, id, found)| (text.into(), (id, found))).collect();
        Ok(Some(AddedTokens { ids, pattern }))
    }

    /// The parts of a text, which is prepared as the vocabulary splits it.
    pub(super) fn split<'t>(&self, text: &'t str) -> Vec<Part<'t>> {
        let mut parts = Vec::new();
        let mut from = 0;
        for found in self.pattern.find_iter(text) {
            let Some(&(id, place)) = self.ids.get(found.as_str()) else { continue };
            let stands_alone = || {
                let is_of_word = |character: char| character.is_alphanumeric() || character == '_';
                !text[..found.start()].ends_with(is_of_word) && !text[found.end()..].starts_with(is_of_word)
            };
            if place == Found::AsWord && !stands_alone() {
                continue;
            }
            if from < found.start() {
                parts.push(Part::Text(&text[from..found.start()]));
            }
            parts.push(Part::Added(id));
            from = found.end();
        }
        if from < text.len() {
            parts.push(Part::Text(&text[from..]));
        }
        parts
    }
}

/// Reads tokens to add, one a line. White space around them and empty lines do not count, and one that is there twice counts once.
pub(crate) fn read_tokens(path: &Path) -> Result<Vec<String>, TokenizerError> {
    let file = || path.display().to_string();
    let bytes = fs::read(path).map_err(|error| TokenizerError::Read { file: file(), error })?;
    let wrong = |reason: String| TokenizerError::AddedTokens { file: file(), reason };
    let text = String::from_utf8(bytes).map_err(|error| wrong(format!("it is not UTF-8 ({error})")))?;
    let mut seen = FxHashSet::default();
    let mut tokens = Vec::new();
    for (line, token) in (1..).zip(text.lines().map(str::trim)).filter(|(_, token)| !token.is_empty()) {
        if token.len() > LONGEST || token.contains(char::is_control) {
            return Err(wrong(format!(
                "line {line} has more than {LONGEST} bytes, or control characters: write one token a line"
            )));
        }
        if seen.insert(token) {
            tokens.push(token.to_owned());
        }
    }
    match tokens.len() {
        0 => Err(wrong("it has no tokens: write one a line".to_owned())),
        1..=MOST => Ok(tokens),
        more => Err(wrong(format!("it has {more} tokens, and at most {MOST} are added to a vocabulary"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(found: Found) -> AddedTokens {
        let tokens = [(" Libre", 7), (" LibreOffice", 8), ("a.b", 9)];
        let tokens = tokens.iter().map(|(text, id)| ((*text).to_owned(), *id, found)).collect();
        AddedTokens::new(tokens).expect("few and short").expect("some")
    }

    #[test]
    fn the_longest_is_found_and_the_rest_is_text() {
        use Part::{Added, Text};
        let split = |text| added(Found::Anywhere).split(text);
        assert_eq!(split(" use LibreOffice or Libre"), [Text(" use"), Added(8), Text(" or"), Added(7)]);
        assert_eq!(split(" LibreOffices a.b"), [Added(8), Text("s "), Added(9)]);
        assert_eq!(split("axb"), [Text("axb")]);
        assert!(split("").is_empty());
        let whole = added(Found::AsWord);
        assert_eq!(whole.split("xa.b, a.b"), [Text("xa.b, "), Added(9)]);
        assert_eq!(whole.split("a.b."), [Added(9), Text(".")]);
    }

    #[test]
    fn files_of_tokens_are_read_and_refused_with_their_line() {
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
