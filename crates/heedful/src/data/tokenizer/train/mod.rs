//! Learning a vocabulary from word counts.

mod alphabet;
mod bpe;
mod unigram;
mod word_level;

use serde::{Deserialize, Serialize};
use tokenizers::models::ModelWrapper;

use self::alphabet::Alphabet;
use super::pieces::RESERVED;
use super::rules::{Boundaries, NormalizationForm, Rules, SplitMode};
use super::{Tokenizer, TokenizerError};

/// The kind of a vocabulary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VocabularyKind {
    /// Byte pair encoding (Sennrich et al. 2016): the most frequent pair of pieces is merged into a piece,
    /// repeatedly.
    #[default]
    Bpe,
    /// A unigram language model over pieces (Kudo 2018): starts with many pieces and prunes the least useful
    /// ones.
    Unigram,
    /// Whole words; unknown words are split into characters.
    Word,
    /// Single characters.
    Character,
}

/// How a vocabulary is learned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VocabularyOptions {
    /// The kind of its pieces.
    pub kind: VocabularyKind,
    /// Maximum number of tokens, special tokens and bytes included.
    pub size: usize,
    /// The Unicode normalization of the text.
    pub normalization: NormalizationForm,
    /// Where words end; only for subword vocabularies (`VocabularyKind::Bpe`, `VocabularyKind::Unigram`).
    pub boundaries: Boundaries,
    /// How often a merged pair, or a word, must occur to become a piece.
    pub min_frequency: u64,
    /// The share of the text whose characters become pieces; rarer characters are encoded as bytes.
    pub coverage: f64,
}

impl Default for VocabularyOptions {
    fn default() -> VocabularyOptions {
        VocabularyOptions {
            kind: VocabularyKind::Bpe,
            size: 8000,
            normalization: NormalizationForm::None,
            boundaries: Boundaries::Words,
            min_frequency: 2,
            coverage: 0.9999,
        }
    }
}

impl VocabularyOptions {
    pub(super) fn split_mode(&self) -> SplitMode {
        match (self.kind, self.boundaries) {
            (VocabularyKind::Word, _) => SplitMode::WholeWords,
            (VocabularyKind::Character, _) => SplitMode::Characters,
            (VocabularyKind::Bpe | VocabularyKind::Unigram, Boundaries::Words) => SplitMode::Words,
            (VocabularyKind::Bpe | VocabularyKind::Unigram, Boundaries::Spaces) => SplitMode::Spaces,
        }
    }
}

/// Learns a vocabulary from words in a fixed order.
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
    if options.kind == VocabularyKind::Character {
        // Characters that do not fit are encoded as bytes.
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
        VocabularyKind::Bpe => bpe::train(&alphabet.covered(words), options)?.into(),
        VocabularyKind::Unigram => unigram::train(&alphabet.covered(words), options)?.into(),
        VocabularyKind::Word => word_level::words(words, &alphabet, options)?.into(),
        VocabularyKind::Character => word_level::characters(&alphabet)?.into(),
    };
    Ok(Tokenizer::new(model, rules))
}
