//! Rows of a model that no token of its vocabulary has: sizes are rounded up, because products of round sizes are faster. Each gets a
//! special token, so that the model computes with all of its rows; since it has no text, it is never generated.

use crate::data::Tokenizer;

/// The name of the token of such a row.
pub(super) fn name(id: usize) -> String {
    format!("<no token {id}>")
}

/// These tokens and those without a text, in ascending order.
pub(super) fn without_text(tokenizer: &Tokenizer, mut suppressed: Vec<u32>) -> Vec<u32> {
    let ids = 0..tokenizer.size() as u32;
    suppressed.extend(ids.filter(|&id| tokenizer.is_special(id) && tokenizer.piece(id) == name(id as usize)));
    suppressed.sort_unstable();
    suppressed.dedup();
    suppressed
}
