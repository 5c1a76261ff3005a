//! Terminology: prescribed translations of source terms.
//!
//! ```text
//! Hund<TAB>dog            one pair per line: a source term and its required translation
//! New York<TAB>Nueva York
//! ```

use std::fs;
use std::path::Path;

use rustc_hash::FxHashMap;

use crate::{Error, Result};

/// Source terms and their target terms.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    terms: Vec<Term>,
    by_source: FxHashMap<String, usize>,
    /// The distinct lengths of source terms in bytes, in descending order.
    lengths: Vec<usize>,
}

/// A term and its translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The source term.
    pub source: String,
    /// The target term, which the translation must contain.
    pub target: String,
}

impl Terms {
    /// Reads a file. Blank lines are skipped.
    pub fn open(path: impl AsRef<Path>) -> Result<Terms> {
        let path = path.as_ref();
        let file = path.display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => Terms::parse(&file, &text),
            Err(error) => Err(Error::new(format!("{file}: {error}"))),
        }
    }

    /// Parses the text of a file; error messages name it as `file`.
    pub fn parse(file: &str, text: &str) -> Result<Terms> {
        let mut terms = Terms::default();
        for (number, line) in text.trim_start_matches('\u{FEFF}').lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let line_number = number + 1;
            let pair = line.split_once('\t').map(|(source, target)| (source.trim(), target.trim()));
            let Some((source, target)) = pair.filter(|(source, target)| {
                !source.is_empty() && !target.is_empty() && !target.contains('\t')
            }) else {
                return Err(Error::new(format!(
                    "{file}, line {line_number}: write a source term, a tab and its target term, and neither may be blank"
                )));
            };
            terms.add(source, target).map_err(|first| {
                Error::new(format!(
                    "{file}, line {line_number}: “{source}” is “{first}” in an earlier line: keep one of them"
                ))
            })?;
        }
        Ok(terms)
    }

    /// Adds a term; fails with the existing target if the source term has another one.
    fn add(&mut self, source: &str, target: &str) -> Result<(), String> {
        if let Some(&other) = self.by_source.get(source) {
            let other = &self.terms[other].target;
            return if other == target { Ok(()) } else { Err(other.clone()) };
        }
        self.by_source.insert(source.to_owned(), self.terms.len());
        self.terms.push(Term { source: source.to_owned(), target: target.to_owned() });
        if let Err(index) = self.lengths.binary_search_by(|length| source.len().cmp(length)) {
            self.lengths.insert(index, source.len());
        }
        Ok(())
    }

    /// Whether there are no terms.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms that occur in a text as whole words, case-sensitively: from left to right, the longest match
    /// at each position, each term once.
    pub fn found_in(&self, text: &str) -> Vec<&Term> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(next) = text[at..].chars().next() {
            match self.longest_at(text, at) {
                Some(term) => {
                    if !found.contains(&term) {
                        found.push(term);
                    }
                    at += self.terms[term].source.len();
                }
                None => at += next.len_utf8(),
            }
        }
        found.into_iter().map(|term| &self.terms[term]).collect()
    }

    fn longest_at(&self, text: &str, at: usize) -> Option<usize> {
        if !is_boundary(text, at) {
            return None;
        }
        let term = |&length: &usize| {
            let word = text.get(at..at + length)?;
            self.by_source.get(word).copied().filter(|_| is_boundary(text, at + length))
        };
        self.lengths.iter().find_map(term)
    }
}

/// Whether a word can begin or end at this position.
fn is_boundary(text: &str, at: usize) -> bool {
    match (text[..at].chars().next_back(), text[at..].chars().next()) {
        (Some(before), Some(after)) => !(is_letter_of_word(before) && is_letter_of_word(after)),
        _ => true,
    }
}

/// Whether the character is alphanumeric in a script with spaces between words. Scripts without spaces (Thai
/// to Burmese, Khmer, Chinese, Japanese) have a word boundary at every character.
fn is_letter_of_word(character: char) -> bool {
    let is_unspaced = matches!(u32::from(character),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3005..=0x3007 | 0x3040..=0x30FF | 0x31F0..=0x31FF
        | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0xFF66..=0xFF9F | 0x20000..=0x3FFFF);
    character.is_alphanumeric() && !is_unspaced
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(terms: &str, text: &str) -> Vec<String> {
        let terms = Terms::parse("terms.tsv", terms).expect("good terms");
        terms.found_in(text).into_iter().map(|term| term.target.clone()).collect()
    }

    #[test]
    fn terms_are_whole_words_and_the_longest_wins() {
        let terms = "dog\tHund\nNew York\tNueva York\nYork\tYork\n\nYork Times\tTimes\nC++\tC++\n";
        assert_eq!(found(terms, "A dog, a dog and a hotdog."), ["Hund"]);
        assert_eq!(found(terms, "dogs in New York Times"), ["Nueva York"]);
        assert_eq!(found(terms, "York: (dog) C++"), ["York", "Hund", "C++"]);
        assert!(found(terms, "Dog").is_empty() && found(terms, "").is_empty());
        // In scripts without spaces, a term matches anywhere.
        assert_eq!(found("自动驾驶\tautonomous driving\n", "一套自动驾驶解决方案"), ["autonomous driving"]);
    }

    #[test]
    fn malformed_lines_are_named() {
        let error = |text| Terms::parse("t.tsv", text).expect_err("a bad file").to_string();
        let pair = "write a source term, a tab and its target term, and neither may be blank";
        for bad in ["a\tb\n\nc d\n", "a\tb\n\nc\t \n", "a\tb\n\n\tc\n", "a\tb\n\na\tb\tc\n"] {
            assert_eq!(error(bad), format!("t.tsv, line 3: {pair}"));
        }
        assert_eq!(
            error("a\tb\na\tb\na\tc\n"),
            "t.tsv, line 3: “a” is “b” in an earlier line: keep one of them"
        );
    }
}
