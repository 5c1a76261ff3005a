//! Vocabularies of whole words and of characters. Both are byte pair encodings without merges: a word that
//! is in the vocabulary is one piece; any other is split into characters, and unknown characters into
//! bytes.

use std::cmp::Reverse;

use tokenizers::models::bpe::{BPE, Vocab};

use super::VocabularyOptions;
use super::alphabet::Alphabet;
use super::bpe::training_error;
use crate::data::special;
use crate::data::tokenizer::TokenizerError;
use crate::data::tokenizer::pieces::reserved;

/// All characters and the most frequent words.
pub(super) fn words(
    mut words: Vec<(Box<str>, u64)>,
    alphabet: &Alphabet,
    options: &VocabularyOptions,
) -> Result<BPE, TokenizerError> {
    words.retain(|(word, count)| {
        *count >= options.min_frequency && word.chars().nth(1).is_some() && alphabet.covers(word)
    });
    words.sort_unstable_by(|(a, a_count), (b, b_count)| (Reverse(a_count), a).cmp(&(Reverse(b_count), b)));
    let mut names = character_names(alphabet);
    words.truncate(options.size - names.len());
    names.extend(words.into_iter().map(|(word, _)| String::from(word)));
    without_merges(names)
}

/// Characters only.
pub(super) fn characters(alphabet: &Alphabet) -> Result<BPE, TokenizerError> {
    without_merges(character_names(alphabet))
}

fn character_names(alphabet: &Alphabet) -> Vec<String> {
    reserved().chain(alphabet.sorted().into_iter().map(String::from)).collect()
}

fn without_merges(names: Vec<String>) -> Result<BPE, TokenizerError> {
    let vocabulary: Vocab = (0..).zip(names).map(|(id, name)| (name, id)).collect();
    BPE::builder()
        .vocab_and_merges(vocabulary, vec![])
        .cache_capacity(0)
        .byte_fallback(true)
        .ignore_merges(true)
        .unk_token(special::NAMES[special::UNK as usize].to_owned())
        .build()
        .map_err(training_error)
}
