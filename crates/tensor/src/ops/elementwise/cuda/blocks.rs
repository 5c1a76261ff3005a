//! Elementwise operations on one array or on two.

use std::ptr;

use bytemuck::NoUninit;

use super::MODULE;
use crate::cuda::{Blocks, DropoutArgument, Pointer};
use crate::ops::elementwise::blocks::ElementOp;
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
    op: u32,
    factor: f32,
}

/// `op(a, b)` in `dtype`, element by element.
pub(in crate::ops::elementwise) fn binary(op: ElementOp, a: &Array, b: &Array, dtype: DType) -> Array {
    let out = Array::scratch_on(Device::Cuda, dtype, a.rows(), a.width());
    let (dropout, factor) = match op {
        ElementOp::Dropout(dropout) => (dropout, 1.0),
        ElementOp::Scale(factor) => (Dropout::NONE, factor),
        _ => (Dropout::NONE, 1.0),
    };
    let dropout_argument = DropoutArgument::of(dropout);
    let args = Elementwise {
        a: a.pointer(),
        b: if ptr::eq(a, b) { Pointer::NULL } else { b.pointer() },
        out: out.pointer(),
        dropout: dropout_argument.pointer(),
        n: a.len() as u64,
        op: op_code(op),
        factor,
    };
    let name = format!("elementwise_{}_{}_to_{dtype}", a.dtype(), b.dtype());
    launch!(MODULE.function(name), Blocks::for_each(a.len().div_ceil(4)), args);
    out
}

/// As in the kernels' source.
fn op_code(op: ElementOp) -> u32 {
    match op {
        ElementOp::Add => 0,
        ElementOp::Subtract => 1,
        ElementOp::Multiply => 2,
        ElementOp::Scale(_) => 3,
        ElementOp::Dropout(_) => 4,
        ElementOp::Tanh => 5,
        ElementOp::TanhSlope => 6,
        ElementOp::Relu => 7,
        ElementOp::ReluSlope => 8,
    }
}
