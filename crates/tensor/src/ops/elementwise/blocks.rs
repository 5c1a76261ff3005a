//! What is done element by element: a step over one array, or over two.

use super::{cpu, cuda};
use crate::random::Dropout;
use crate::{Array, DType, Device};

/// What becomes of `a`, or of `a` and `b`. Slopes multiply a gradient `a` by the derivative at the input `b`.
#[derive(Clone, Copy)]
pub(super) enum Step {
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
