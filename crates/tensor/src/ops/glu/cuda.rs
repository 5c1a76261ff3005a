//! The gates, one thread for each element of y.

use crate::cuda::{Blocks, Module};
use crate::{Array, Device};

pub(crate) static MODULE: Module = Module::new("glu", include_str!("cuda.cu"));

/// `y = a ∘ σ(b)`.
pub(super) fn forward(x: &Array) -> Array {
    let width = x.width() / 2;
    let y = Array::scratch_on(Device::Cuda, x.dtype(), x.rows(), width);
    let function = MODULE.function(format!("glu_{}", x.dtype()));
    let blocks = Blocks::for_each(y.len());
    launch!(function, blocks, x.pointer(), y.pointer(), width as u32, y.len() as u64);
    y
}

/// `[da | db]`.
pub(super) fn backward(x: &Array, g: &Array) -> Array {
    let dx = Array::scratch_on(Device::Cuda, x.dtype(), x.rows(), x.width());
    let function = MODULE.function(format!("glu_backward_{}", x.dtype()));
    let (blocks, width) = (Blocks::for_each(g.len()), g.width() as u32);
    launch!(function, blocks, x.pointer(), g.pointer(), dx.pointer(), width, g.len() as u64);
    dx
}
