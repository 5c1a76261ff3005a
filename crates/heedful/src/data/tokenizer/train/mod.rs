//! Learning a vocabulary from word counts.

mod alphabet;
mod bpe;
mod unigram;
mod whole;

use serde::{Deserialize, Serialize};
use tokenizers::models::ModelWrapper;

use self::alphabet::Alphabet;
use super::pieces::RESERVED;
use super::rules::{Boundaries, Cuts, Normalization, Rules};
use super::{Tokenizer, TokenizerError};

/// What the pieces of a vocabulary are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Byte pair encoding (Sennrich et al. 2016): the most frequent pair of pieces becomes a piece, again and again.
    #[default]
    Bpe,
    /// A unigram language model over pieces (Kudo 2018): many pieces first, then the least useful ones go.
    Unigram,
    /// Whole words; others are spelled in characters.
    Word,
    /// Single characters.
    Character,
}

/// How to learn a vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VocabularyOptions {
    /// What its pieces are.
    pub kind: Kind,
    /// The most tokens it may have, special tokens and bytes included.
    pub size: usize,
    /// What is done to text first.
    pub normalization: Normalization,
    /// Where words end; only for subwords (`Kind::Bpe`, `Kind::Unigram`).
    pub boundaries: Boundaries,
    /// How often a merged pair, or a word, must come to become a piece.
    pub min_frequency: u64,
    /// The share of the text whose characters become pieces; rarer characters are spelled in bytes.
    pub coverage: f64,
}

impl Default for VocabularyOptions {
    fn default() -> VocabularyOptions {
        VocabularyOptions {
            kind: Kind::Bpe,
            size: 8000,
            normalization: Normalization::None,
            boundaries: Boundaries::Words,
            min_frequency: 2,
            coverage: 0.9999,
        }
    }
}

impl VocabularyOptions {
    pub(super) fn cuts(&self) -> Cuts {
        match (self.kind, self.boundaries) {
            (Kind::Word, _) => Cuts::WholeWords,
            (Kind::Character, _) => Cuts::Characters,
            (Kind::Bpe | Kind::Unigram, Boundaries::Words) => Cuts::Words,
            (Kind::Bpe | Kind::Unigram, Boundaries::Spaces) => Cuts::Spaces,
        }
    }
}

/// Learns from words in a fixed order.
pub(super) fn train(
    words: Vec<(Box<str>, u64)>,
    options: &VocabularyOptions,
    rules: Rules,
) -> Result<Tokenizer, TokenizerError> {
    if words.is_empty() {
        return Err(TokenizerError::NoText);
    }
    if !(options.coverage > 0.0 && options.coverage <= 1.0) {
        return Err(TokenizerError::Coverage(options.coverage));
    }
    let mut alphabet = Alphabet::of(&words, options.coverage);
    if options.kind == Kind::Character {
        // Nothing else needs room: what does not fit is spelled in bytes.
        alphabet.keep_most_frequent(options.size.saturating_sub(RESERVED));
    }
    let needed = RESERVED + alphabet.size();
    if options.size < needed.max(RESERVED + 1) {
        return Err(TokenizerError::TooSmall {
            size: options.size,
            characters: alphabet.size(),
            needed,
            coverage: options.coverage,
        });
    }
    let model: ModelWrapper = match options.kind {
        Kind::Bpe => bpe::train(&alphabet.covered(words), options)?.into(),
        Kind::Unigram => unigram::train(&alphabet.covered(words), options)?.into(),
        Kind::Word => whole::words(words, &alphabet, options)?.into(),
        Kind::Character => whole::characters(&alphabet)?.into(),
    };
    Ok(Tokenizer::new(model, rules))
}
