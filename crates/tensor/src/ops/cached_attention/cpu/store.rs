//! Cached rows: copied when the store grows, written one by one.

use std::ops::Range;

use super::rounded;
use crate::{Array, DType};

/// A copy with `rows` rows; the new ones are uninitialized.
pub(in crate::ops::cached_attention) fn grown(array: &Array, rows: usize) -> Array {
    let mut larger = Array::scratch(array.dtype(), rows, array.width());
    let len = array.len();
    by_type!(array.dtype(), T => T::of_mut(&mut larger)[..len].copy_from_slice(T::of(array)));
    larger
}

/// `columns` of each row of `from` as row `rows[i]` of `to`.
pub(in crate::ops::cached_attention) fn write_rows(
    from: &Array,
    columns: Range<usize>,
    to: &mut Array,
    rows: &[u32],
) {
    let stride = from.width();
    match (from.dtype(), to.dtype()) {
        (DType::F32, DType::F32) => {
            each(from.f32(), stride, columns, to.f32_mut(), rows, |from, to| to.copy_from_slice(from));
        }
        (DType::Bf16, DType::Bf16) => {
            each(from.bf16(), stride, columns, to.bf16_mut(), rows, |from, to| to.copy_from_slice(from));
        }
        (DType::F32, DType::Bf16) => each(from.f32(), stride, columns, to.bf16_mut(), rows, rounded),
        (DType::Bf16, DType::F32) => panic!("key value store: bf16 into f32"),
    }
}

/// Writes each row.
fn each<T, S>(
    from: &[T],
    stride: usize,
    columns: Range<usize>,
    to: &mut [S],
    rows: &[u32],
    write: impl Fn(&[T], &mut [S]),
) {
    let width = columns.len();
    for (from, &row) in from.chunks_exact(stride).zip(rows) {
        let start = row as usize * width;
        write(&from[columns.clone()], &mut to[start..start + width]);
    }
}
