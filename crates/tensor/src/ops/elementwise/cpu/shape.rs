//! Copies of blocks, gathered rows and scattered rows.

use crate::cpu::number::{self, Numbers};
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType};

/// Columns of one task of [`scattered_rows`]: whole cache lines.
const COLUMNS: usize = 64;

/// Row `rows[i]` of x as row i.
pub(in crate::ops::elementwise) fn gathered_rows(x: &Array, rows: &[usize]) -> Array {
    let width = x.width();
    let mut y = Array::scratch(x.dtype(), rows.len(), width);
    for (to, &from) in rows.iter().enumerate() {
        copy(x, [from, 0], &mut y, [to, 0], [1, width]);
    }
    y
}

/// Adds row i of `g` to row `rows[i]` of an f32 array of zeros with `height` rows.
pub(in crate::ops::elementwise) fn scattered_rows(g: &Array, rows: &[usize], height: usize) -> Array {
    let width = g.width();
    let mut sums = Array::zeros(DType::F32, height, width);
    let shared = SharedMut::new(sums.f32_mut());
    parallel(width.div_ceil(COLUMNS), |task| {
        let columns = task * COLUMNS..((task + 1) * COLUMNS).min(width);
        for (from, &to) in rows.iter().enumerate() {
            // SAFETY: every column belongs to one task.
            let to = unsafe { shared.slice(to * width + columns.start..to * width + columns.end) };
            add(Numbers::of(g).part(from * width + columns.start..from * width + columns.end), to);
        }
    });
    sums
}

kernel! {
    fn add(from: Numbers<'_>, to: &mut [f32]) {
        match from {
            Numbers::F32(from) => number::add_each(to, from),
            Numbers::Bf16(from) => number::add_each(to, from),
        }
    }
}

/// Copies a block of `[rows, columns]` elements between arrays of one type; corners are `[row, column]`.
pub(in crate::ops::elementwise) fn copy(
    from: &Array,
    corner: [usize; 2],
    to: &mut Array,
    to_corner: [usize; 2],
    block: [usize; 2],
) {
    let widths = [from.width(), to.width()];
    by_type!(from.dtype(), T => copy_block(T::of(from), corner, T::of_mut(to), to_corner, block, widths));
}

fn copy_block<T: Copy>(
    from: &[T],
    corner: [usize; 2],
    to: &mut [T],
    to_corner: [usize; 2],
    [rows, columns]: [usize; 2],
    [width, to_width]: [usize; 2],
) {
    for row in 0..rows {
        let at = (corner[0] + row) * width + corner[1];
        let to_at = (to_corner[0] + row) * to_width + to_corner[1];
        to[to_at..to_at + columns].copy_from_slice(&from[at..at + columns]);
    }
}
