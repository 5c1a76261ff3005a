//! The two compute types: how each reads an array and which kernels are its own.

use std::ops::Range;

use half::bf16;

use super::backward::{self, BackwardStep};
use super::forward::{self, ForwardStep};
use crate::cpu::convert::narrow;
use crate::cpu::number::Number;
use crate::{Array, DType};

/// The type of gates and of the operands of products. States and sums are f32 in any case.
pub(super) trait Compute: Number + 'static {
    const DTYPE: DType;

    fn of(array: &Array) -> &[Self];
    fn of_mut(array: &mut Array) -> &mut [Self];
    /// `to = from`, rounded.
    fn round(from: &[f32], to: &mut [Self]);
    fn forward(step: &ForwardStep<'_, Self>, rows: Range<usize>);
    fn backward(step: &BackwardStep<'_, Self>, rows: Range<usize>);
}

impl Compute for f32 {
    const DTYPE: DType = DType::F32;

    fn of(array: &Array) -> &[f32] {
        array.f32()
    }

    fn of_mut(array: &mut Array) -> &mut [f32] {
        array.f32_mut()
    }

    fn round(from: &[f32], to: &mut [f32]) {
        to.copy_from_slice(from);
    }

    fn forward(step: &ForwardStep<'_, f32>, rows: Range<usize>) {
        forward::forward_f32(step, rows);
    }

    fn backward(step: &BackwardStep<'_, f32>, rows: Range<usize>) {
        backward::backward_f32(step, rows);
    }
}

impl Compute for bf16 {
    const DTYPE: DType = DType::Bf16;

    fn of(array: &Array) -> &[bf16] {
        array.bf16()
    }

    fn of_mut(array: &mut Array) -> &mut [bf16] {
        array.bf16_mut()
    }

    fn round(from: &[f32], to: &mut [bf16]) {
        narrow(from, to);
    }

    fn forward(step: &ForwardStep<'_, bf16>, rows: Range<usize>) {
        forward::forward_bf16(step, rows);
    }

    fn backward(step: &BackwardStep<'_, bf16>, rows: Range<usize>) {
        backward::backward_bf16(step, rows);
    }
}
