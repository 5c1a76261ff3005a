//! Softmax over the rows of an array, one block for each row.

use crate::cuda::{Blocks, Module};
use crate::{Array, DType, Device};

pub(crate) static MODULE: Module = Module::new("softmax", include_str!("cuda.cu"));

/// `softmax(x)`.
pub(super) fn forward(x: &Array) -> Array {
    let y = Array::scratch_on(Device::Cuda, DType::F32, x.rows(), x.width());
    let function = MODULE.function(format!("softmax_{}", x.dtype()));
    launch!(function, Blocks::of(x.rows(), 256), x.pointer(), y.pointer(), x.width() as u32);
    y
}

/// `dx` from `dy`, in place.
pub(super) fn backward(p: &Array, g: &mut Array) {
    g.clear_partial_column_sums();
    let function = MODULE.function("softmax_backward");
    launch!(function, Blocks::of(p.rows(), 256), p.pointer(), g.pointer(), p.width() as u32);
}
