//! Sums over all elements and over rows, and their backward broadcasts.

use super::MODULE;
use crate::cuda::Blocks;
use crate::{Array, DType, Device};

/// Elements of one partial sum of [`sum`], as in the kernels' source.
const CHUNK: usize = 16 * 1024;

/// `Σ x`, 1 × 1.
pub(in crate::ops::elementwise) fn sum(x: &Array) -> Array {
    let parts = x.len().div_ceil(CHUNK);
    // f64 values.
    let partial = Array::scratch_on(Device::Cuda, DType::F32, parts, 2);
    let total = Array::scratch_on(Device::Cuda, DType::F32, 1, 1);
    let function = MODULE.function(format!("sum_parts_{}", x.dtype()));
    launch!(function, Blocks::of(parts, 256), x.pointer(), partial.pointer(), x.len() as u64);
    let function = MODULE.function("sum_total");
    launch!(function, Blocks::of(1, 32), partial.pointer(), total.pointer(), parts as u32);
    total
}

/// The scalar `g`, broadcast to a shape.
pub(in crate::ops::elementwise) fn filled(shape: [usize; 2], g: &Array) -> Array {
    broadcast(g, shape, [1, 1])
}

/// The sum of each row.
pub(in crate::ops::elementwise) fn row_sums(x: &Array) -> Array {
    let (rows, width) = (x.rows(), x.width());
    let sums = Array::scratch_on(Device::Cuda, DType::F32, rows, 1);
    let function = MODULE.function(format!("row_sums_{}", x.dtype()));
    let blocks = Blocks::of(rows.div_ceil(4), 128);
    launch!(function, blocks, x.pointer(), sums.pointer(), rows as u32, width as u32);
    sums
}

/// The single column of `g`, repeated `width` times.
pub(in crate::ops::elementwise) fn repeated_column(g: &Array, width: usize) -> Array {
    broadcast(g, [g.rows(), width], [width, g.rows()])
}

/// `to[i] = from[i / each % count]` for an array of shape `[rows, width]`.
fn broadcast(from: &Array, [rows, width]: [usize; 2], [each, count]: [usize; 2]) -> Array {
    let to = Array::scratch_on(Device::Cuda, DType::F32, rows, width);
    let (function, blocks) = (MODULE.function("broadcast"), Blocks::for_each(to.len()));
    let (n, [each, count]) = (to.len() as u64, [each, count].map(|size| size as u32));
    launch!(function, blocks, from.pointer(), to.pointer(), n, each, count);
    to
}
