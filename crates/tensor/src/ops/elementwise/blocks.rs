//! Elementwise operations on one array or on two.

use super::{cpu, cuda};
use crate::random::Dropout;
use crate::{Array, DType, Device};

/// The operation on `a`, or on `a` and `b`. `…Slope` multiplies a gradient `a` by the derivative at the input
/// `b`.
#[derive(Clone, Copy)]
pub(super) enum ElementOp {
    Add,
    Subtract,
    Multiply,
    Scale(f32),
    Dropout(Dropout),
    Tanh,
    TanhSlope,
    Relu,
    ReluSlope,
}

/// `op(a)` in `dtype`.
pub(super) fn unary(op: ElementOp, a: &Array, dtype: DType) -> Array {
    binary(op, a, a, dtype)
}

/// `op(a, b)` in `dtype`, element by element.
pub(super) fn binary(op: ElementOp, a: &Array, b: &Array, dtype: DType) -> Array {
    match a.device() {
        Device::Cpu => cpu::binary(op, a, b, dtype),
        Device::Cuda => cuda::binary(op, a, b, dtype),
    }
}
