//! Block statistics of logits on a GPU: for every 64 neighbouring logits of a row, their maximum and the sum
//! of `exp(x − max)` (`cuda/block_stats.cu`).

use crate::{Array, DType, Device};

/// Logits of a block, as in the kernels' source.
const BLOCK: usize = 64;

/// The number of blocks of a row.
pub(crate) fn blocks_of_row(width: usize) -> usize {
    width.div_ceil(BLOCK)
}

/// Uninitialized memory for the statistics of all rows.
pub(crate) fn scratch(rows: usize, width: usize) -> Array {
    Array::scratch_on(Device::Cuda, DType::F32, rows, 2 * blocks_of_row(width))
}
