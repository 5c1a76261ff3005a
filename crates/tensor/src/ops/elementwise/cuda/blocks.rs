//! Steps over one array, over two, or over one and a row.

use std::ptr;

use bytemuck::NoUninit;

use super::MODULE;
use crate::cuda::{Blocks, DropoutArgument, Pointer};
use crate::ops::elementwise::blocks::Step;
use crate::random::Dropout;
use crate::{Array, DType, Device};

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Elementwise {
    a: Pointer,
    b: Pointer,
    out: Pointer,
    dropout: Pointer,
    n: u64,
    row: u32,
    step: u32,
    factor: f32,
    unused: u32,
}

/// `step(a, b)` in `dtype`, element by element.
pub(in crate::ops::elementwise) fn binary(step: Step, a: &Array, b: &Array, dtype: DType) -> Array {
    apply(step, a, b, 0, dtype)
}

/// `step(row, b)` in `dtype` for every row of `a`.
pub(in crate::ops::elementwise) fn with_row(step: Step, a: &Array, b: &Array, dtype: DType) -> Array {
    apply(step, a, b, b.width(), dtype)
}

fn apply(step: Step, a: &Array, b: &Array, row: usize, dtype: DType) -> Array {
    let out = Array::scratch_on(Device::Cuda, dtype, a.rows(), a.width());
    let (dropout, factor) = match step {
        Step::Dropout(dropout) => (dropout, 1.0),
        Step::Scale(factor) => (Dropout::NONE, factor),
        _ => (Dropout::NONE, 1.0),
    };
    let drawn = DropoutArgument::of(dropout);
    let job = Elementwise {
        a: a.pointer(),
        b: if ptr::eq(a, b) { Pointer::NULL } else { b.pointer() },
        out: out.pointer(),
        dropout: drawn.pointer(),
        n: a.len() as u64,
        row: row as u32,
        step: number(step),
        factor,
        unused: 0,
    };
    let name = match (a.dtype(), b.dtype(), dtype) {
        (DType::F32, DType::F32, DType::F32) => "elementwise_f32_f32_to_f32",
        (DType::F32, DType::F32, DType::Bf16) => "elementwise_f32_f32_to_bf16",
        (DType::F32, DType::Bf16, DType::F32) => "elementwise_f32_bf16_to_f32",
        (DType::F32, DType::Bf16, DType::Bf16) => "elementwise_f32_bf16_to_bf16",
        (DType::Bf16, DType::F32, DType::F32) => "elementwise_bf16_f32_to_f32",
        (DType::Bf16, DType::F32, DType::Bf16) => "elementwise_bf16_f32_to_bf16",
        (DType::Bf16, DType::Bf16, DType::F32) => "elementwise_bf16_bf16_to_f32",
        (DType::Bf16, DType::Bf16, DType::Bf16) => "elementwise_bf16_bf16_to_bf16",
    };
    launch!(MODULE.function(name), Blocks::for_each(a.len().div_ceil(4)), job);
    out
}

/// As in the kernels' source.
fn number(step: Step) -> u32 {
    match step {
        Step::Add => 0,
        Step::Subtract => 1,
        Step::Multiply => 2,
        Step::Divide => 3,
        Step::Scale(_) => 4,
        Step::Dropout(_) => 5,
        Step::Tanh => 6,
        Step::TanhSlope => 7,
        Step::Sigmoid => 8,
        Step::SigmoidSlope => 9,
        Step::Relu => 10,
        Step::ReluSlope => 11,
        Step::Gelu => 12,
        Step::GeluSlope => 13,
        Step::GeluTanh => 14,
        Step::GeluTanhSlope => 15,
        Step::Silu => 16,
        Step::SiluSlope => 17,
        Step::Exp => 18,
        Step::ExpSlope => 19,
        Step::Log => 20,
    }
}
