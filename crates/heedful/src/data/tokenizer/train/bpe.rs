//! Byte pair encoding, learned by the `tokenizers` crate. It breaks ties by the ids of a pair, which follow
//! from the order of its special tokens and of the sorted alphabet, so the result does not depend on the
//! order of its maps.

use std::collections::BTreeMap;

use tokenizers::AddedToken;
use tokenizers::models::bpe::{BPE, BpeTrainer};

use super::VocabularyOptions;
use crate::data::special;
use crate::data::tokenizer::TokenizerError;
use crate::data::tokenizer::pieces::reserved;

/// The trainer counts pairs in 32 bits.
const MAX_PAIR_COUNT: u64 = i32::MAX as u64;

pub(super) fn train(
    words: &BTreeMap<Box<str>, u64>,
    options: &VocabularyOptions,
) -> Result<BPE, TokenizerError> {
    let characters: u64 = words.iter().map(|(word, count)| word.chars().count() as u64 * count).sum();
    let divisor = characters.div_ceil(MAX_PAIR_COUNT).max(1);
    let words = words.iter().map(|(word, count)| ((&**word).into(), count.div_ceil(divisor))).collect();
    // Reserved names come first in the vocabulary. They are not added tokens of a tokenizer, so text is not
    // matched against them.
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(options.size)
        .min_frequency(options.min_frequency.div_ceil(divisor))
        .special_tokens(reserved().map(|name| AddedToken::from(name, true)).collect())
        .build();
    let mut model = BPE::builder().cache_capacity(0).build().map_err(training_error)?;
    trainer.do_train(&words, &mut model).map_err(training_error)?;
    model.byte_fallback = true;
    model.unk_token = Some(special::NAMES[special::UNK as usize].to_owned());
    Ok(model)
}

pub(super) fn training_error(error: tokenizers::Error) -> TokenizerError {
    TokenizerError::Training(error.to_string())
}
