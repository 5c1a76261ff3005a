//! The alphabet: the characters that become pieces.

use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) struct Alphabet {
    /// Most frequent first; equally frequent ones in code point order.
    characters: Vec<char>,
    members: HashSet<char>,
}

impl Alphabet {
    /// The most frequent characters that make up `coverage` of the text.
    pub(super) fn of(words: &[(Box<str>, u64)], coverage: f64) -> Alphabet {
        let mut counts: HashMap<char, u64> = HashMap::new();
        for (word, count) in words {
            for character in word.chars() {
                *counts.entry(character).or_default() += count;
            }
        }
        let total: u64 = counts.values().sum();
        let mut counts: Vec<(char, u64)> = counts.into_iter().collect();
        counts.sort_unstable_by_key(|&(character, count)| (std::cmp::Reverse(count), character));
        let enough = coverage * total as f64;
        let mut covered = 0;
        let most_frequent = counts.into_iter().take_while(|&(_, count)| {
            let missing = (covered as f64) < enough;
            covered += count;
            missing
        });
        // NUL is excluded: the unigram trainer separates words by it.
        let characters =
            most_frequent.map(|(character, _)| character).filter(|&character| character != '\0').collect();
        Alphabet::new(characters)
    }

    fn new(characters: Vec<char>) -> Alphabet {
        Alphabet { members: characters.iter().copied().collect(), characters }
    }

    pub(super) fn size(&self) -> usize {
        self.characters.len()
    }

    /// Drops all but the `count` most frequent characters.
    pub(super) fn keep_most_frequent(&mut self, count: usize) {
        let mut characters = std::mem::take(&mut self.characters);
        characters.truncate(count);
        *self = Alphabet::new(characters);
    }

    /// The characters in code point order.
    pub(super) fn sorted(&self) -> Vec<char> {
        let mut sorted = self.characters.clone();
        sorted.sort_unstable();
        sorted
    }

    pub(super) fn covers(&self, word: &str) -> bool {
        word.chars().all(|character| self.members.contains(&character))
    }

    /// The words without rare characters, sorted. A word is split at a rare character, because the parts on
    /// both sides of it are not adjacent.
    pub(super) fn covered(&self, words: Vec<(Box<str>, u64)>) -> BTreeMap<Box<str>, u64> {
        let mut covered = BTreeMap::new();
        for (word, count) in words {
            if self.covers(&word) {
                *covered.entry(word).or_default() += count;
                continue;
            }
            let parts = word.split(|character| !self.members.contains(&character));
            for part in parts.filter(|part| !part.is_empty()) {
                *covered.entry(part.into()).or_default() += count;
            }
        }
        covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[(&str, u64)]) -> Vec<(Box<str>, u64)> {
        words.iter().map(|&(word, count)| (word.into(), count)).collect()
    }

    #[test]
    fn rare_characters_are_excluded_and_words_are_split_there() {
        let words = words(&[("ab", 50), ("aXb", 1), ("b", 49)]);
        let alphabet = Alphabet::of(&words, 0.99);
        assert_eq!(alphabet.sorted(), ['a', 'b']);
        let covered: Vec<_> = alphabet.covered(words).into_iter().collect();
        assert_eq!(covered, [("a".into(), 1), ("ab".into(), 50), ("b".into(), 50)]);
    }

    #[test]
    fn a_coverage_of_one_keeps_every_character() {
        let words = words(&[("ab", 1_000_000), ("c", 1)]);
        assert_eq!(Alphabet::of(&words, 1.0).sorted(), ['a', 'b', 'c']);
    }
}
