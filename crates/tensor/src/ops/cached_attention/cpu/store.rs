//! Stored rows: copied when the store grows, written one by one.

use std::ops::Range;

use crate::{Array, DType};

/// A copy with `rows` rows, of which the last ones are unspecified.
pub(in crate::ops::cached_attention) fn grown(array: &Array, rows: usize) -> Array {
    let mut larger = Array::scratch(array.dtype(), rows, array.width());
    let len = array.len();
    match array.dtype() {
        DType::F32 => larger.f32_mut()[..len].copy_from_slice(array.f32()),
        DType::Bf16 => larger.bf16_mut()[..len].copy_from_slice(array.bf16()),
    }
    larger
}

/// `columns` of each row of `from` as row `rows[i]` of `to`.
pub(in crate::ops::cached_attention) fn write_rows(
    from: &Array,
    columns: Range<usize>,
    to: &mut Array,
    rows: &[u32],
) {
    match to.dtype() {
        DType::F32 => copy_rows(from.f32(), from.width(), columns, to.f32_mut(), rows),
        DType::Bf16 => copy_rows(from.bf16(), from.width(), columns, to.bf16_mut(), rows),
    }
}

fn copy_rows<T: Copy>(from: &[T], stride: usize, columns: Range<usize>, to: &mut [T], rows: &[u32]) {
    let width = columns.len();
    for (from, &row) in from.chunks_exact(stride).zip(rows) {
        let start = row as usize * width;
        to[start..start + width].copy_from_slice(&from[columns.clone()]);
    }
}
