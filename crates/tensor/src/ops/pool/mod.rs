//! One vector for each sequence of a batch, from the vectors of its tokens.
//!
//! ```text
//! attention   y_i = Σ_t α_t v_t        α = softmax of the scores of the tokens t of sequence i
//! mean        y_i = Σ_t v_t / n_i
//! max         y_i = max_t v_t          column by column
//! ```
//!
//! Shapes: scores are tokens × 1, values tokens × d, the result is sequences × d in the values' type. Each may be f32 or
//! bf16; arithmetic is f32. Sums run over the tokens of a sequence in their order, so a sequence gives the same bits in
//! any batch.

mod attention;
mod plain;

pub use attention::{Pooled, attention_pool};
pub use plain::{max_pool, mean_pool};

use std::ops::Range;

use crate::cpu::number::{Number, Numbers, NumbersMut};
use crate::cpu::threads::parallel;
use crate::{Ragged, Tensor};

/// Panics with the operation's name if there are not as many rows as tokens, or a sequence has nothing to pool.
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

/// Calls `work` with the number and the rows of every sequence.
fn each_sequence(sequences: &Ragged, work: impl Fn(usize, Range<usize>) + Sync) {
    parallel(sequences.sequences(), |sequence| work(sequence, sequences.range(sequence)));
}

/// The elements of some rows.
fn elements(rows: &Range<usize>, width: usize) -> Range<usize> {
    rows.start * width..rows.end * width
}

kernel! {
    /// `out = factor · sums`, rounded.
    fn store(factor: f32, sums: &[f32], out: NumbersMut<'_>) {
        match out {
            NumbersMut::F32(out) => scale_each(factor, sums, out),
            NumbersMut::Bf16(out) => scale_each(factor, sums, out),
        }
    }
}

kernel! {
    /// `sums += factor · row`.
    fn add_scaled(factor: f32, row: Numbers<'_>, sums: &mut [f32]) {
        match row {
            Numbers::F32(row) => add_each(factor, row, sums),
            Numbers::Bf16(row) => add_each(factor, row, sums),
        }
    }
}

#[inline(always)]
fn add_each<T: Number>(factor: f32, row: &[T], sums: &mut [f32]) {
    for (sum, x) in sums.iter_mut().zip(row) {
        *sum += factor * x.wide();
    }
}

kernel! {
    /// `out = factor · row`, both of one type.
    fn scaled(factor: f32, row: Numbers<'_>, out: NumbersMut<'_>) {
        match (row, out) {
            (Numbers::F32(row), NumbersMut::F32(out)) => scale_each(factor, row, out),
            (Numbers::Bf16(row), NumbersMut::Bf16(out)) => scale_each(factor, row, out),
            _ => unreachable!("a gradient has the type of its values"),
        }
    }
}

#[inline(always)]
fn scale_each<A: Number, B: Number>(factor: f32, row: &[A], out: &mut [B]) {
    for (out, x) in out.iter_mut().zip(row) {
        *out = B::nearest(factor * x.wide());
    }
}
