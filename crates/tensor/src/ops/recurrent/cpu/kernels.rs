//! The two compute types: which kernels are their own.

use std::ops::Range;

use half::bf16;

use super::backward::{self, BackwardStep};
use super::forward::{self, ForwardStep};
use crate::cpu::number::Element;

/// The type of gates and of the operands of products. States and sums are f32 in any case.
pub(super) trait Kernels: Element {
    fn forward(step: &ForwardStep<'_, Self>, rows: Range<usize>);
    fn backward(step: &BackwardStep<'_, Self>, rows: Range<usize>);
}

impl Kernels for f32 {
    fn forward(step: &ForwardStep<'_, f32>, rows: Range<usize>) {
        forward::forward_f32(step, rows);
    }

    fn backward(step: &BackwardStep<'_, f32>, rows: Range<usize>) {
        backward::backward_f32(step, rows);
    }
}

impl Kernels for bf16 {
    fn forward(step: &ForwardStep<'_, bf16>, rows: Range<usize>) {
        forward::forward_bf16(step, rows);
    }

    fn backward(step: &BackwardStep<'_, bf16>, rows: Range<usize>) {
        backward::backward_bf16(step, rows);
    }
}
