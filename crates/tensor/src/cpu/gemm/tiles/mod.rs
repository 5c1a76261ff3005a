//! AMX: 16 × 16 sums in one instruction, bf16 operands.
//!
//! A block of 32 × 32 sums stays in four tile registers while `k` runs in steps of 32. The left side is read
//! in place (row-major bf16), the right side is packed in the order of the tile loads.
//!
//! f32 products use the same instructions (bf16x3): each f32 is split into three bf16 without loss,
//! `a = a₀ + a₁ + a₂` with 8 bits of the mantissa each:
//!
//! ```text
//! a b = a₂b₀ + a₁b₀ + a₁b₁ + a₀b₁ + a₀b₂ + a₀b₀        (+ a₁b₂ + a₂b₁ + a₂b₂, less than 2⁻²⁰ of a b, left out)
//! ```
//!
//! Six tile products with f32 accumulation are faster than f32 fused multiply-adds and, because a sum takes
//! two products at a time, had half their error in measurements. An infinite operand gives NaN, as ∞ · 0
//! does.
//!
//! The AMX intrinsics are unstable in Rust, so `unit` is assembly; its [`step`] is the body of the inner
//! loop.

mod block;
mod edge;
mod finish;
mod pack;
pub(crate) mod small;
mod transpose;
mod unit;
mod walk;

use std::ops::Range;

use half::bf16;

use crate::cpu::gemm::finish::Destination;
use crate::cpu::gemm::packed::Parts;
use crate::cpu::gemm::{Elements, Matrix, PANEL, Packed, Piece};
use crate::cpu::math::to_bf16_bits;
use crate::{Array, DType};

use pack::pack_left;
pub(crate) use pack::{pack_columns, pack_rows};
pub(crate) use transpose::transpose;
use unit::Left;
pub(crate) use unit::{configure_thread, is_permitted, peak_work};
pub(crate) use walk::CHUNK;
use walk::{Segment, Task, chunks, one_chunk, row_by_row};

/// `k` values of one tile instruction.
pub(crate) const DEPTH: usize = 32;
/// Elements of one part of a packed step: two tiles of 16 × 32.
const STEP: usize = 2 * TILE;
/// Elements of a tile.
const TILE: usize = 16 * DEPTH;
/// Rows and columns of a block of sums.
const BLOCK: usize = PANEL;

/// Steps of a sum of length `k`; the last one is padded with zeros.
pub(crate) fn steps(k: usize) -> usize {
    k.div_ceil(DEPTH)
}

/// Elements of one packed step.
pub(crate) fn step_len(parts: Parts) -> usize {
    parts as usize * STEP
}

/// One task of [`super::multiply`].
pub(crate) fn multiply(
    lhs: Matrix<'_>,
    rhs: &Packed,
    parts: Parts,
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    let task = Task { parts, rows, strips, steps: steps(rhs.k) };
    match parts {
        Parts::One => multiply_rounded(lhs, rhs, &task, out),
        Parts::Three => multiply_split(lhs, rhs, &task, out),
    }
}

fn multiply_rounded(lhs: Matrix<'_>, rhs: &Packed, task: &Task, out: &Destination<'_>) {
    let rows = task.rows.clone();
    let whole = rows.len() / BLOCK * BLOCK;
    let in_place = match lhs.elements {
        Elements::Bf16(values) if rhs.k.is_multiple_of(DEPTH) => Some(values),
        _ => None,
    };
    // Rows that cannot be read in place (f32, an incomplete last block of rows, a `k` that is not a multiple
    // of the tile) are copied with zero padding. Zeros add nothing: the sums keep their bits.
    let copied_from = if in_place.is_some() { rows.start + whole } else { rows.start };
    let depth = task.steps * DEPTH;
    let copied = (copied_from < rows.end).then(|| copy_padded(lhs, copied_from..rows.end, depth));
    let left_of = |row: usize| {
        if row >= copied_from {
            let copied = copied.as_ref().expect("rows were copied").bf16();
            left_rows(&copied[(row - copied_from) * depth..], depth)
        } else {
            left_rows(&in_place.expect("rows in place")[row * lhs.row_stride..], lhs.row_stride)
        }
    };
    let at = |row, strip, step| Segment {
        left: left_of(row).advanced(step),
        right: strip_of(rhs, strip, Parts::One, step),
        steps: task.steps - step,
    };
    row_by_row(at, task, task.steps * step_len(Parts::One) * 2, out);
}

/// f32: splits the rows of the task into three bf16, a chunk of `k` at a time.
fn multiply_split(lhs: Matrix<'_>, rhs: &Packed, task: &Task, out: &Destination<'_>) {
    let rows = &task.rows;
    let longest = task.steps.min(CHUNK) * step_len(Parts::Three);
    let mut left = Array::scratch(DType::Bf16, rows.len().div_ceil(BLOCK), longest);
    for chunk in chunks(task.steps) {
        let block_len = chunk.len() * step_len(Parts::Three);
        let columns = chunk.start * DEPTH..(chunk.end * DEPTH).min(lhs.columns);
        pack_left(lhs, rows.clone(), columns, left.bf16_mut());
        let at = |row: usize, strip, step: usize| {
            let block = &left.bf16()[(row - rows.start) / BLOCK * block_len..][..block_len];
            Segment {
                left: packed_block(block, Parts::Three).advanced(step - chunk.start),
                right: strip_of(rhs, strip, Parts::Three, step),
                steps: chunk.end - step,
            }
        };
        one_chunk(at, task, &chunk, out);
    }
}

/// One task of [`super::multiply_pieces`].
pub(crate) fn multiply_pieces(
    pieces: &[&Piece],
    parts: Parts,
    rows: Range<usize>,
    strips: Range<usize>,
    out: &Destination<'_>,
) {
    let at = |row: usize, strip: usize, mut step: usize| {
        let mut pieces = pieces.iter();
        loop {
            let Piece { left, right } = pieces.next().expect("steps of a piece");
            let there = steps(left.k);
            if step < there {
                let left = packed_rows(&left.data, row / BLOCK, parts).advanced(step);
                let right = strip_of(right, strip, parts, step);
                return Segment { left, right, steps: there - step };
            }
            step -= there;
        }
    };
    let steps = pieces.iter().map(|piece| steps(piece.left.k)).sum();
    let task = Task { parts, rows, strips, steps };
    row_by_row(at, &task, steps * step_len(parts) * 2, out);
}

/// A packed block of rows.
fn packed_rows(data: &Array, block: usize, parts: Parts) -> Left {
    packed_block(&data.bf16()[block * data.width()..][..data.width()], parts)
}

fn packed_block(rows: &[bf16], parts: Parts) -> Left {
    Left { start: rows.as_ptr().cast(), row: 64, lower: TILE * 2, step: step_len(parts) * 2 }
}

/// A packed strip from a step on.
fn strip_of(rhs: &Packed, strip: usize, parts: Parts, step: usize) -> *const bf16 {
    let strip_len = steps(rhs.k) * step_len(parts);
    rhs.data.bf16()[strip * strip_len..][step * step_len(parts)..strip_len].as_ptr()
}

fn left_rows(values: &[bf16], stride: usize) -> Left {
    Left { start: values.as_ptr().cast(), row: stride * 2, lower: stride * 2 * 16, step: DEPTH * 2 }
}

fn copy_padded(lhs: Matrix<'_>, rows: Range<usize>, depth: usize) -> Array {
    // At least 16 rows are read, 32 if there are more.
    let mut copied = Array::zeros(DType::Bf16, rows.len().next_multiple_of(16), depth);
    for (row, out) in rows.zip(copied.bf16_mut().chunks_exact_mut(depth.max(1))) {
        let range = row * lhs.row_stride..row * lhs.row_stride + lhs.columns;
        match lhs.elements {
            Elements::F32(values) => {
                for (out, &value) in out.iter_mut().zip(&values[range]) {
                    *out = bf16::from_bits(to_bf16_bits(value));
                }
            }
            Elements::Bf16(values) => out[..lhs.columns].copy_from_slice(&values[range]),
        }
    }
    copied
}
