//! Products of two arrays.

use std::borrow::Cow;

use crate::cuda::{Epilogue, Operand, Product, multiply};
use crate::{Array, DType, Device};

/// `a · b`, with operands rounded to `dtype`, which the result has too.
pub(in crate::ops::elementwise) fn product(a: &Array, b: &Array, dtype: DType) -> Array {
    let (a, b) = (rounded(a, dtype), rounded(b, dtype));
    multiplied(a.operand(), b.operand(), [a.rows(), b.width()], dtype)
}

/// `dA = dY Bᵀ`, with operands rounded to `operands`, stored as `dtype`.
pub(in crate::ops::elementwise) fn left_gradient(
    g: &Array,
    b: &Array,
    operands: DType,
    dtype: DType,
) -> Array {
    let (g, b) = (rounded(g, operands), rounded(b, operands));
    multiplied(g.operand(), b.operand().transposed(), [g.rows(), b.rows()], dtype)
}

/// `dB = Aᵀ dY`, with operands rounded to `operands`, stored as `dtype`.
pub(in crate::ops::elementwise) fn right_gradient(
    a: &Array,
    g: &Array,
    operands: DType,
    dtype: DType,
) -> Array {
    let (a, g) = (rounded(a, operands), rounded(g, operands));
    multiplied(a.operand().transposed(), g.operand(), [a.width(), g.width()], dtype)
}

fn rounded(array: &Array, dtype: DType) -> Cow<'_, Array> {
    if array.dtype() == dtype { Cow::Borrowed(array) } else { Cow::Owned(array.to(dtype)) }
}

fn multiplied(left: Operand, right: Operand, [rows, width]: [usize; 2], dtype: DType) -> Array {
    let out = Array::scratch_on(Device::Cuda, dtype, rows, width);
    multiply(&Product { left, right, out: out.operand(), add: false, epilogue: Epilogue::None });
    out
}
