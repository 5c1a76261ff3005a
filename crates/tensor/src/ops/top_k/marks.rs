//! Marks of scores on a GPU: for every 64 neighbours of a row the largest, and the sum of their powers (`marks.cu`).

use crate::{Array, DType, Device};

/// Scores of a mark, as in the kernels' source.
const MARKED: usize = 64;

/// How many marks a row has.
pub(crate) fn of_row(width: usize) -> usize {
    width.div_ceil(MARKED)
}

/// Memory for the marks of all rows.
pub(crate) fn room(rows: usize, width: usize) -> Array {
    Array::scratch_on(Device::Cuda, DType::F32, rows, 2 * of_row(width))
}
