//! The task of the demo: words of random letters and the same words backwards.
//!
//! A word's letters are a function of (seed, step, index), so a run can be repeated. The words of the test are drawn
//! first and training draws again whenever it meets one of them: the two never overlap.

use std::collections::HashSet;

use heedful::batch::{Batch, BatchError};
use heedful::tensor::random::Stream;

/// Before the first letter of an output.
pub(super) const BOS: u32 = 1;
/// After its last.
pub(super) const EOS: u32 = 2;
const FIRST_LETTER: u32 = 3;
const LETTERS: u32 = 26;
/// `<pad>` (never used), `<bos>`, `<eos>` and the letters.
pub(super) const VOCABULARY: usize = (FIRST_LETTER + LETTERS) as usize;

const SHORTEST: usize = 3;
const HELD_OUT: u32 = 1000;
/// Draws for one word: its length, its letters and as much again for each attempt.
const DRAWS: u32 = 1 << 16;

/// Random words to train on, and others to test with.
pub(super) struct Words {
    longest: usize,
    seed: u64,
    held_out: Vec<Vec<u32>>,
    forbidden: HashSet<Vec<u32>>,
}

impl Words {
    /// Words of 3 to `longest` letters. `shown` are kept out of training too.
    pub(super) fn new(longest: usize, seed: u64, shown: &[&str]) -> Words {
        let mut words = Words { longest, seed, held_out: Vec::new(), forbidden: HashSet::new() };
        words.forbidden.extend(shown.iter().map(|word| encode(word)));
        for index in 0..HELD_OUT {
            let word = words.draw(0, index);
            words.forbidden.insert(word.clone());
            words.held_out.push(word);
        }
        words
    }

    /// The words of the test, all different.
    pub(super) fn held_out(&self) -> &[Vec<u32>] {
        &self.held_out
    }

    /// `size` words for training step `step`, which counts from 1.
    pub(super) fn batch(&self, step: u64, size: usize) -> Result<Batch, BatchError> {
        let pairs: Vec<_> = (0..size as u32)
            .map(|index| {
                let word = self.draw(step, index);
                let backwards = word.iter().rev().copied().collect();
                (word, backwards)
            })
            .collect();
        Batch::new(&pairs, BOS, EOS)
    }

    /// One word and what was made of it.
    pub(super) fn pair(&self, word: &[u32], output: &[u32]) -> Result<Batch, BatchError> {
        Batch::new(&[(word.to_vec(), output.to_vec())], BOS, EOS)
    }

    fn draw(&self, step: u64, index: u32) -> Vec<u32> {
        // A stream of their own, apart from those of the model's first values and of dropout.
        let stream = Stream::new(self.seed, step, u64::from(u32::MAX));
        let mut draws = (index * DRAWS..).map(|i| stream.bits(i));
        let mut next = |below: u32| draws.next().expect("draws do not end") % below;
        loop {
            let length = SHORTEST as u32 + next((self.longest - SHORTEST + 1) as u32);
            let word = (0..length).map(|_| FIRST_LETTER + next(LETTERS)).collect();
            if !self.forbidden.contains(&word) {
                return word;
            }
        }
    }
}

/// Lower-case letters as tokens.
pub(super) fn encode(word: &str) -> Vec<u32> {
    word.bytes().map(|letter| u32::from(letter - b'a') + FIRST_LETTER).collect()
}

/// Tokens as letters; a model that has not learned yet may also say something that is none.
pub(super) fn decode(tokens: &[u32]) -> String {
    let letter = |&token: &u32| match token.checked_sub(FIRST_LETTER) {
        Some(letter) if letter < LETTERS => char::from(b'a' + letter as u8),
        _ => '?',
    };
    tokens.iter().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_never_sees_the_test() {
        let words = Words::new(4, 7, &["heed"]);
        let distinct: HashSet<_> = words.held_out().iter().collect();
        assert_eq!(distinct.len(), HELD_OUT as usize);
        assert!(!distinct.contains(&encode("heed")));
        for step in 1..200 {
            let batch = words.batch(step, 64).expect("a good batch");
            for range in batch.source_sequences.ranges() {
                let word = batch.source[range].to_vec();
                assert!(
                    (3..=4).contains(&word.len()) && !words.forbidden.contains(&word),
                    "{}",
                    decode(&word)
                );
            }
        }
    }

    #[test]
    fn targets_are_words_backwards() {
        let words = Words::new(12, 7, &[]);
        let batch = words.batch(1, 10).expect("a good batch");
        for (source, target) in batch.source_sequences.ranges().zip(batch.target_sequences.ranges()) {
            let said = &batch.target_out[target.start..target.end - 1];
            assert!(batch.source[source].iter().rev().eq(said));
        }
    }

    #[test]
    fn letters_make_the_round_trip() {
        assert_eq!(decode(&encode("attention")), "attention");
        assert_eq!(decode(&[BOS, 3, 28]), "?az");
    }
}
