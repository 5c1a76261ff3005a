//! Products of two arrays; the right one is packed first.

use crate::cpu::gemm::{Finish, Matrix, Output, Packed, multiply, multiply_transposed};
use crate::{Array, Compute, DType};

/// `a · b`, with operands rounded to the type of `compute`, which the result has too.
pub(in crate::ops::elementwise) fn product(a: &Array, b: &Array, compute: Compute) -> Array {
    multiplied(a, Matrix::of(b), compute, compute.dtype())
}

/// `dA = dY Bᵀ`, with operands rounded to `operands`, stored as `dtype`.
pub(in crate::ops::elementwise) fn left_gradient(
    g: &Array,
    b: &Array,
    operands: DType,
    dtype: DType,
) -> Array {
    multiplied(g, Matrix::of(b).transposed(), Compute::training(operands), dtype)
}

/// `dB = Aᵀ dY`, with operands rounded to `operands`, stored as `dtype`.
pub(in crate::ops::elementwise) fn right_gradient(
    a: &Array,
    g: &Array,
    operands: DType,
    dtype: DType,
) -> Array {
    let mut db = Array::scratch(dtype, a.width(), g.width());
    multiply_transposed(Matrix::of(a), Matrix::of(g), operands, Output::over(&mut db), None);
    db
}

fn multiplied(a: &Array, b: Matrix<'_>, compute: Compute, dtype: DType) -> Array {
    let packed = Packed::new(b, compute.dtype(), compute.rows);
    let mut out = Array::scratch(dtype, a.rows(), packed.n());
    multiply(Matrix::of(a), &packed, Output::over(&mut out), Finish::NONE);
    out
}
