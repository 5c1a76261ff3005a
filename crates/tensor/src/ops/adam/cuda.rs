//! The update on the card: one pass over everything, which also writes the bf16 copy that the next products read.

use super::Update;
use crate::cuda::{Blocks, Module, Pointer};
use crate::{Array, DType, Device};

pub(crate) static MODULE: Module = Module::new("adam", include_str!("cuda.cu"));

/// Elements of one partial sum of the norm.
const CHUNK: usize = 16 * 1024;

/// Updates everything.
pub(super) fn apply(
    update: Update,
    gradients: &Array,
    values: &mut Array,
    mean: &mut Array,
    square: &mut Array,
    narrow: Pointer,
) {
    let [values, mean, square] = [values, mean, square].map(|array| array.pointer());
    let (function, n) = (MODULE.function("update"), gradients.len());
    launch!(
        function,
        Blocks::for_each(n.div_ceil(4)),
        update,
        gradients.pointer(),
        values,
        mean,
        square,
        narrow,
        n as u64
    );
}

/// `√Σ g²`. Waits for it.
pub(super) fn norm_of(gradients: &Array) -> f32 {
    let (n, parts) = (gradients.len(), gradients.len().div_ceil(CHUNK));
    let sums = Array::scratch_on(Device::Cuda, DType::F32, parts, 2);
    let norm = Array::scratch_on(Device::Cuda, DType::F32, 1, 1);
    let (gradients, sums, out) = (gradients.pointer(), sums.pointer(), norm.pointer());
    launch!(MODULE.function("squares"), Blocks::of(parts, 256), gradients, sums, n as u64);
    launch!(MODULE.function("root"), Blocks::of(1, 256), sums, out, parts as u32);
    norm.to_vec()[0]
}
