//! Word counts of a corpus, from which vocabularies are learned.

use std::collections::HashMap;

use super::rules::Rules;
use super::train::{self, VocabularyOptions};
use super::{Tokenizer, TokenizerError};

/// Longer words (Chinese is written without spaces) are counted in parts, to avoid quadratic time.
const MAX_WORD_CHARACTERS: usize = 64;
/// Maximum number of distinct words in memory: a few hundred megabytes at most, however large the corpus.
const MAX_WORDS: usize = 4_000_000;

/// How often each word occurs.
pub struct WordCounts {
    options: VocabularyOptions,
    rules: Rules,
    counts: HashMap<Box<str>, u64>,
    max_words: usize,
}

impl WordCounts {
    /// Empty counts.
    pub fn new(options: &VocabularyOptions) -> WordCounts {
        let rules = Rules::new(options.normalization, options.split_mode());
        WordCounts { options: options.clone(), rules, counts: HashMap::new(), max_words: MAX_WORDS }
    }

    /// Counts the words of a text.
    pub fn add(&mut self, text: &str) {
        let prepared = self.rules.prepare(text);
        for word in self.rules.words(&prepared) {
            for part in parts(word) {
                match self.counts.get_mut(part) {
                    Some(count) => *count += 1,
                    None => {
                        self.counts.insert(part.into(), 1);
                    }
                }
            }
        }
        self.drop_rare_words();
    }

    /// Adds other counts.
    pub(super) fn merge(&mut self, other: WordCounts) {
        for (word, count) in other.counts {
            *self.counts.entry(word).or_default() += count;
        }
        self.drop_rare_words();
    }

    /// Learns a vocabulary. The same counts and options give the same vocabulary, bit for bit.
    pub fn train(self) -> Result<Tokenizer, TokenizerError> {
        let mut words: Vec<(Box<str>, u64)> = self.counts.into_iter().collect();
        // Sorted, because training must not depend on the order of the hash map.
        words.sort_unstable();
        train::train(words, &self.options, self.rules)
    }

    /// The number of distinct words.
    pub fn distinct(&self) -> usize {
        self.counts.len()
    }

    /// If there are too many words, drops the rarest ones until half of the limit is free. They would not
    /// become pieces.
    fn drop_rare_words(&mut self) {
        let mut rare = 1;
        while self.counts.len() > self.max_words {
            while self.counts.len() > self.max_words / 2 {
                self.counts.retain(|_, count| *count > rare);
                rare += 1;
            }
        }
    }
}

/// A word in parts of at most [`MAX_WORD_CHARACTERS`] characters.
fn parts(mut word: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if word.is_empty() {
            return None;
        }
        let end = match word.len() <= MAX_WORD_CHARACTERS {
            true => word.len(),
            false => word.char_indices().nth(MAX_WORD_CHARACTERS).map_or(word.len(), |(index, _)| index),
        };
        let (part, rest) = word.split_at(end);
        word = rest;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_words_are_dropped_when_there_are_too_many() {
        let mut counts = WordCounts::new(&VocabularyOptions::default());
        counts.max_words = 20;
        for index in 0..100 {
            let word: String =
                format!("{index:03}").chars().map(|digit| (b'a' + digit as u8 - b'0') as char).collect();
            counts.add(&format!("often {word}"));
        }
        assert!(counts.distinct() <= 20, "{}", counts.distinct());
        assert_eq!(counts.counts.get(" often"), Some(&100));
    }

    #[test]
    fn long_words_are_counted_in_parts() {
        let word = "你".repeat(150);
        let lengths: Vec<usize> = parts(&word).map(|part| part.chars().count()).collect();
        assert_eq!(lengths, [64, 64, 22]);
        assert_eq!(parts(&word).collect::<String>(), word);
        assert_eq!(parts("").count(), 0);
    }
}
