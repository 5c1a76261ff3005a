//! A unigram language model over pieces (Kudo 2018). It has its own trainer, because that of the `tokenizers`
//! crate depends on the order of hash maps and on the number of threads, so that no two runs give the same
//! vocabulary.
//!
//! ```text
//! p(word) = Σ over segmentations Π p(piece)
//! ```
//!
//! 1. Seeds: all characters, and the substrings that cover most of the text.
//! 2. Expectation-maximization: the expected count of each piece over all segmentations; then `p` from the
//!    counts.
//! 3. Pruning: the pieces whose removal lowers the likelihood least are removed. Back to 2, until the
//!    vocabulary is small enough.

mod lattice;
mod prune;
mod seeds;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tokenizers::models::unigram::Unigram;

use self::lattice::Lattices;
use super::VocabularyOptions;
use super::bpe::training_error;
use crate::data::special;
use crate::data::tokenizer::TokenizerError;
use crate::data::tokenizer::pieces::{RESERVED, reserved};

/// Rounds of expectation-maximization before each pruning.
const ROUNDS: usize = 2;
/// A piece with a lower expected count is removed.
const MIN_EXPECTED_COUNT: f64 = 0.5;

/// Maximum number of characters of distinct words to learn from: the lattices keep every piece at every
/// position in memory.
const MAX_CHARACTERS: usize = 8_000_000;

/// A word and how often it occurs.
pub(super) type Word = (Vec<char>, f64);

/// A piece and the logarithm of its probability.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    characters: Vec<char>,
    score: f64,
}

impl Piece {
    /// Characters always stay: without them a word might have no segmentation.
    fn is_character(&self) -> bool {
        self.characters.len() == 1
    }
}

pub(super) fn train(
    words: &BTreeMap<Box<str>, u64>,
    options: &VocabularyOptions,
) -> Result<Unigram, TokenizerError> {
    let words = most_frequent(words);
    let target_size = options.size - RESERVED;
    let mut pieces = seeds::find(&words, target_size, options.min_frequency);
    let mut lattices = Lattices::of(&words, &pieces);
    loop {
        for _ in 0..ROUNDS {
            let expected = lattices.expected_uses(&pieces);
            let kept = maximize(&mut pieces, &expected);
            lattices.retain(&kept);
        }
        // A few more than needed: the final selection is by probability.
        let enough = target_size + target_size / 10;
        if pieces.len() <= enough {
            break;
        }
        let kept = prune::choose(&pieces, &lattices, enough);
        retain(&mut pieces, &kept);
        lattices.retain(&kept);
    }
    model(final_pieces(pieces, target_size))
}

/// The words to learn from, in a fixed order: the most frequent ones if there are too many, because all their
/// substrings are examined.
fn most_frequent(words: &BTreeMap<Box<str>, u64>) -> Vec<Word> {
    let mut words: Vec<(&str, u64)> = words.iter().map(|(word, &count)| (&**word, count)).collect();
    words.sort_by_key(|&(_, count)| Reverse(count));
    let mut characters = 0;
    let few_enough =
        words.into_iter().map(|(word, count)| (word.chars().collect::<Vec<char>>(), count as f64));
    few_enough
        .take_while(|(word, _)| {
            characters += word.len();
            characters <= MAX_CHARACTERS
        })
        .collect()
}

/// Sets new scores from expected counts, and returns which pieces are kept.
fn maximize(pieces: &mut Vec<Piece>, expected: &[f64]) -> Vec<bool> {
    let kept: Vec<bool> = pieces
        .iter()
        .zip(expected)
        .map(|(piece, &expected)| piece.is_character() || expected >= MIN_EXPECTED_COUNT)
        .collect();
    let mut total = 0.0;
    for (piece, &expected) in pieces.iter_mut().zip(expected) {
        piece.score = expected.max(MIN_EXPECTED_COUNT);
    }
    retain(pieces, &kept);
    pieces.iter().for_each(|piece| total += piece.score);
    // The digamma function instead of the logarithm penalizes rare pieces more, so fewer of them survive.
    let total = digamma(total);
    pieces.iter_mut().for_each(|piece| piece.score = digamma(piece.score) - total);
    kept
}

fn retain(pieces: &mut Vec<Piece>, kept: &[bool]) {
    let mut kept = kept.iter();
    pieces.retain(|_| *kept.next().expect("one decision for each piece"));
}

/// The logarithmic derivative of the gamma function, for positive numbers.
fn digamma(mut x: f64) -> f64 {
    let mut below = 0.0;
    // The asymptotic series is accurate from about 6 on; ψ(x) = ψ(x + 1) − 1/x leads there.
    while x < 6.0 {
        below -= 1.0 / x;
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    below + x.ln() - 0.5 / x - square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))
}

/// All characters and the most probable other pieces, most probable first.
fn final_pieces(pieces: Vec<Piece>, target_size: usize) -> Vec<(String, f64)> {
    let (characters, mut others): (Vec<Piece>, Vec<Piece>) =
        pieces.into_iter().partition(Piece::is_character);
    sort(&mut others);
    others.truncate(target_size.saturating_sub(characters.len()));
    let mut pieces = characters;
    pieces.append(&mut others);
    sort(&mut pieces);
    // Every JSON parser preserves this many digits.
    let rounded = |score: f64| (score * 1e6).round() / 1e6;
    pieces.into_iter().map(|piece| (piece.characters.iter().collect(), rounded(piece.score))).collect()
}

fn sort(pieces: &mut [Piece]) {
    pieces.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.characters.cmp(&b.characters)));
}

fn model(pieces: Vec<(String, f64)>) -> Result<Unigram, TokenizerError> {
    // Words never contain a reserved name, so its score has no effect.
    let vocabulary = reserved().map(|name| (name, 0.0)).chain(pieces).collect();
    let mut model = Unigram::from(vocabulary, Some(special::UNK as usize), true).map_err(training_error)?;
    model.resize_cache(0);
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digamma_has_the_known_values() {
        for (x, expected) in [(1.0, -0.577_215_664_9), (0.5, -1.963_510_026), (10.0, 2.251_752_589)] {
            assert!((digamma(x) - expected).abs() < 1e-6, "{x}: {}", digamma(x));
        }
    }

    #[test]
    fn frequent_words_become_pieces_and_scores_are_probabilities() {
        let words: BTreeMap<Box<str>, u64> = [(" there", 100), (" here", 80), (" the", 200), (" x", 3)]
            .map(|(word, n)| (word.into(), n))
            .into();
        let options = VocabularyOptions { size: RESERVED + 12, ..VocabularyOptions::default() };
        let model = train(&words, &options).expect("a vocabulary");
        let pieces: Vec<&str> = model.iter().skip(RESERVED).map(|(piece, _)| piece.as_str()).collect();
        assert!(pieces.len() <= 12 && pieces.contains(&" the"), "{pieces:?}");
        let total: f64 = model.iter().skip(RESERVED).map(|(_, score)| score.exp()).sum();
        assert!(total > 0.5 && total <= 1.001, "{total}");
        assert_eq!(model.encode(" the").expect("known characters"), [" the"]);
    }
}
