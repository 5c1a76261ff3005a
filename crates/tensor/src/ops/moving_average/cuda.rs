//! The average over the flat vector, on the GPU.

use crate::Array;
use crate::array::cuda::convert;
use crate::cuda::{Blocks, Module};

pub(crate) static MODULE: Module = Module::new("moving_average", include_str!("cuda.cu"));

/// `values += gain (params − values)`.
pub(super) fn update(values: &mut Array, params: &Array, gain: f32) {
    let (function, n) = (MODULE.function("update_average"), params.len());
    launch!(function, Blocks::for_each(n), values.pointer(), params.pointer(), gain, n as u64);
}

pub(super) fn copy(from: &Array, to: &mut Array) {
    convert(from, to);
}

pub(super) fn swap(a: &mut Array, b: &mut Array) {
    let (function, n) = (MODULE.function("swap"), a.len());
    launch!(function, Blocks::for_each(n), a.pointer(), b.pointer(), n as u64);
}
