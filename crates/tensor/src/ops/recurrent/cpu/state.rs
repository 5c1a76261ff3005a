//! Permutes states into the order of a schedule and back.

use crate::cpu::number::{self, Numbers};
use crate::{Array, DType};

/// Row `order[i]` of a state as row i, in f32.
pub(in crate::ops::recurrent) fn gather(state: &Array, order: &[usize]) -> Array {
    let width = state.width();
    let mut sorted = Array::scratch(DType::F32, order.len(), width);
    let from = Numbers::of(state);
    for (&row, to) in order.iter().zip(sorted.f32_mut().chunks_exact_mut(width.max(1))) {
        match from.part(row * width..(row + 1) * width) {
            Numbers::F32(from) => number::copy(from, to),
            Numbers::Bf16(from) => number::copy(from, to),
        }
    }
    sorted
}

/// Row i of `sorted` as row `order[i]`.
pub(in crate::ops::recurrent) fn scatter(sorted: &Array, order: &[usize]) -> Array {
    let width = sorted.width();
    let mut state = Array::scratch(DType::F32, sorted.rows(), width);
    let to = state.f32_mut();
    for (&row, from) in order.iter().zip(sorted.f32().chunks_exact(width.max(1))) {
        to[row * width..(row + 1) * width].copy_from_slice(from);
    }
    state
}
