//! Windows that shift by one token.

use crate::Array;
use crate::cpu::number::Element;
/// The windows of `slots` tokens that follow the previous step's windows `before`.
pub(in crate::ops::convolution) fn slide(
    before: Option<&Array>,
    parents: &[Option<usize>],
    newest: &Array,
    slots: usize,
) -> Array {
    by_type!(newest.dtype(), T => slide_rows::<T>(before, parents, newest, slots))
}

fn slide_rows<T: Element + Default>(
    before: Option<&Array>,
    parents: &[Option<usize>],
    newest: &Array,
    slots: usize,
) -> Array {
    let width = newest.width();
    let mut windows = Array::scratch(T::DTYPE, newest.rows(), slots * width);
    if width == 0 {
        return windows;
    }
    let rows = T::of_mut(&mut windows).chunks_exact_mut(slots * width);
    for ((window, parent), newest) in rows.zip(parents).zip(T::of(newest).chunks_exact(width)) {
        let (past, last) = window.split_at_mut((slots - 1) * width);
        let seen = match (before, parent) {
            (Some(before), Some(parent)) => {
                &T::of(before)[parent * before.width()..(parent + 1) * before.width()]
            }
            _ => &[],
        };
        // The newest tokens of the parent, as many as fit.
        let kept = seen.len().min(past.len());
        let (missing, present) = past.split_at_mut(past.len() - kept);
        missing.fill(T::default());
        present.copy_from_slice(&seen[seen.len() - kept..]);
        last.copy_from_slice(newest);
    }
    windows
}

/// Every `dilation`-th of the newest tokens, `taps` of them.
pub(in crate::ops::convolution) fn dilated(
    slots: &Array,
    width: usize,
    taps: usize,
    dilation: usize,
) -> Array {
    by_type!(slots.dtype(), T => dilated_rows::<T>(slots, width, taps, dilation))
}

fn dilated_rows<T: Element + Default>(slots: &Array, width: usize, taps: usize, dilation: usize) -> Array {
    let mut windows = Array::scratch(T::DTYPE, slots.rows(), taps * width);
    let (count, rows) = (slots.width() / width, T::of(slots).chunks_exact(slots.width()));
    for (window, seen) in T::of_mut(&mut windows).chunks_exact_mut(taps * width).zip(rows) {
        for (tap, to) in window.chunks_exact_mut(width).enumerate() {
            let back = (taps - 1 - tap).saturating_mul(dilation);
            match (count - 1).checked_sub(back) {
                Some(slot) => to.copy_from_slice(&seen[slot * width..(slot + 1) * width]),
                None => to.fill(T::default()),
            }
        }
    }
    windows
}
