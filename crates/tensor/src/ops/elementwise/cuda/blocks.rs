//! Steps over one array, or over two.

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
    step: u32,
    factor: f32,
}

/// `step(a, b)` in `dtype`, element by element.
pub(in crate::ops::elementwise) fn binary(step: Step, a: &Array, b: &Array, dtype: DType) -> Array {
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
        step: number(step),
        factor,
    };
    let name = format!("elementwise_{}_{}_to_{dtype}", a.dtype(), b.dtype());
    launch!(MODULE.function(name), Blocks::for_each(a.len().div_ceil(4)), job);
    out
}

/// As in the kernels' source.
fn number(step: Step) -> u32 {
    match step {
        Step::Add => 0,
        Step::Subtract => 1,
        Step::Multiply => 2,
        Step::Scale(_) => 3,
        Step::Dropout(_) => 4,
        Step::Tanh => 5,
        Step::TanhSlope => 6,
        Step::Relu => 7,
        Step::ReluSlope => 8,
    }
}
