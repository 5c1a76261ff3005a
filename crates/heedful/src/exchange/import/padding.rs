//! Padding rows of embedding matrices, which are rounded up to sizes with a faster GEMM. Each padding row
//! gets a special token, so that the vocabulary has the size of the matrix; the token is suppressed and never
//! generated.

use crate::data::Tokenizer;

/// The name of a padding row's token.
pub(super) fn name(id: usize) -> String {
    format!("<no token {id}>")
}

/// These tokens and those of padding rows, in ascending order.
pub(super) fn with_padding(tokenizer: &Tokenizer, mut suppressed: Vec<u32>) -> Vec<u32> {
    let ids = 0..tokenizer.size() as u32;
    suppressed.extend(ids.filter(|&id| tokenizer.is_special(id) && tokenizer.piece(id) == name(id as usize)));
    suppressed.sort_unstable();
    suppressed.dedup();
    suppressed
}
