//! What is done element by element: a step over one array, over two, or over one and a row.

use super::{cpu, cuda};
use crate::random::Dropout;
use crate::{Array, DType, Device};

/// What becomes of `a`, or of `a` and `b`. Slopes multiply a gradient `a` by the derivative at the input `b`.
#[derive(Clone, Copy)]
pub(super) enum Step {
    Add,
    Subtract,
    Multiply,
    Divide,
    Scale(f32),
    Dropout(Dropout),
    Tanh,
    TanhSlope,
    Sigmoid,
    SigmoidSlope,
    Relu,
    ReluSlope,
    Gelu,
    GeluSlope,
    GeluTanh,
    GeluTanhSlope,
    Silu,
    SiluSlope,
    Exp,
    ExpSlope,
    Log,
}

/// `step(a)` in `dtype`.
pub(super) fn unary(step: Step, a: &Array, dtype: DType) -> Array {
    binary(step, a, a, dtype)
}

/// `step(a, b)` in `dtype`, element by element.
pub(super) fn binary(step: Step, a: &Array, b: &Array, dtype: DType) -> Array {
    match a.device() {
        Device::Cpu => cpu::binary(step, a, b, dtype),
        Device::Cuda => cuda::binary(step, a, b, dtype),
    }
}

/// `step(row, b)` in `dtype` for every row of `a`.
pub(super) fn with_row(step: Step, a: &Array, b: &Array, dtype: DType) -> Array {
    match a.device() {
        Device::Cpu => cpu::with_row(step, a, b, dtype),
        Device::Cuda => cuda::with_row(step, a, b, dtype),
    }
}
