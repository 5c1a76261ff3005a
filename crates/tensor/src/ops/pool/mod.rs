//! Pooling: one vector for each sequence of a batch, from the vectors of its tokens.
//!
//! ```text
//! mean   y_i = Σ_t v_t / n_i
//! max    y_i = max_t v_t          column by column
//! ```
//!
//! Shapes: values are tokens × d, the result is sequences × d in the values' type, f32 or bf16; arithmetic is
//! f32. Sums run over the tokens of a sequence in their order, so a sequence gives the same bits in any
//! batch.

mod cpu;
pub(crate) mod cuda;
mod plain;

pub use plain::{max_pool, mean_pool};

use crate::{Ragged, Tensor};

/// Panics with the operation's name if the rows are not the tokens of the sequences, or a sequence is empty.
fn check(op: &str, values: &Tensor, sequences: &Ragged) {
    let tokens = sequences.tokens();
    assert!(
        values.rows() == tokens,
        "{op}: values are {:?}, their sequences have {tokens} tokens",
        values.shape()
    );
    if let Some(empty) = sequences.lengths().position(|length| length == 0) {
        panic!("{op}: sequence {empty} has no token");
    }
}
