//! Windows that move on by one token each.

use crate::{Array, DType};

/// The windows that follow those of the step `before`.
pub(in crate::ops::convolution) fn slide(
    before: Option<&Array>,
    parents: &[Option<usize>],
    newest: &Array,
    taps: usize,
) -> Array {
    let mut windows = Array::scratch(newest.dtype(), newest.rows(), taps * newest.width());
    match newest.dtype() {
        DType::F32 => slide_rows(before.map(Array::f32), parents, newest.f32(), windows.f32_mut(), taps),
        DType::Bf16 => slide_rows(before.map(Array::bf16), parents, newest.bf16(), windows.bf16_mut(), taps),
    }
    windows
}

fn slide_rows<T: Copy + Default>(
    before: Option<&[T]>,
    parents: &[Option<usize>],
    newest: &[T],
    windows: &mut [T],
    taps: usize,
) {
    let long = windows.len() / parents.len().max(1);
    let width = long / taps;
    if width == 0 {
        return;
    }
    for ((window, parent), newest) in
        windows.chunks_exact_mut(long).zip(parents).zip(newest.chunks_exact(width))
    {
        let (past, last) = window.split_at_mut(long - width);
        match (before, parent) {
            (Some(before), Some(parent)) => {
                past.copy_from_slice(&before[parent * long + width..(parent + 1) * long]);
            }
            _ => past.fill(T::default()),
        }
        last.copy_from_slice(newest);
    }
}
