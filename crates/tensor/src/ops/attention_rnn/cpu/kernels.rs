//! The two compute types: which kernels are their own.

use std::ops::Range;

use half::bf16;

use super::{backward, forward};
use crate::cpu::number::Element;

/// The type of gates and of the operands of products. States and sums are f32 in any case.
pub(super) trait Kernels: Element {
    fn attend(step: &forward::AttentionStep<'_, Self>, row: usize);
    fn step(cells: &forward::CellStep<'_, Self>, rows: Range<usize>);
    fn attend_backward(step: &backward::AttentionStep<'_, Self>, row: usize);
    fn step_back(cells: &backward::CellStep<'_, Self>, rows: Range<usize>);
}

impl Kernels for f32 {
    fn attend(step: &forward::AttentionStep<'_, f32>, row: usize) {
        forward::attend_f32(step, row);
    }

    fn step(cells: &forward::CellStep<'_, f32>, rows: Range<usize>) {
        forward::step_f32(cells, rows);
    }

    fn attend_backward(step: &backward::AttentionStep<'_, f32>, row: usize) {
        backward::attend_backward_f32(step, row);
    }

    fn step_back(cells: &backward::CellStep<'_, f32>, rows: Range<usize>) {
        backward::step_back_f32(cells, rows);
    }
}

impl Kernels for bf16 {
    fn attend(step: &forward::AttentionStep<'_, bf16>, row: usize) {
        forward::attend_bf16(step, row);
    }

    fn step(cells: &forward::CellStep<'_, bf16>, rows: Range<usize>) {
        forward::step_bf16(cells, rows);
    }

    fn attend_backward(step: &backward::AttentionStep<'_, bf16>, row: usize) {
        backward::attend_backward_bf16(step, row);
    }

    fn step_back(cells: &backward::CellStep<'_, bf16>, rows: Range<usize>) {
        backward::step_back_bf16(cells, rows);
    }
}
