//! Softmax over the rows of an array, some rows in a task.

use std::ops::Range;

use crate::cpu::math::exp;
use crate::cpu::number::{self, Numbers};
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType};

/// Rows of one task.
const ROWS: usize = 16;

/// `softmax(x)`.
pub(super) fn forward(x: &Array) -> Array {
    let mut y = Array::scratch(DType::F32, x.rows(), x.width());
    let from = Numbers::of(x);
    in_rows(&mut y, |rows, y| forward_rows(from.part(rows), x.width(), y));
    y
}

/// `dx` from `dy`, in place.
pub(super) fn backward(p: &Array, g: &mut Array) {
    in_rows(g, |rows, g| backward_rows(&p.f32()[rows], p.width(), g));
}

/// Calls `work` with the elements of some rows of `array` at a time.
fn in_rows(array: &mut Array, work: impl Fn(Range<usize>, &mut [f32]) + Sync) {
    let (rows, width) = (array.rows(), array.width());
    let shared = SharedMut::new(array.f32_mut());
    parallel(rows.div_ceil(ROWS), |task| {
        let range = task * ROWS * width..((task + 1) * ROWS).min(rows) * width;
        // SAFETY: tasks have disjoint rows.
        work(range.clone(), unsafe { shared.slice(range) });
    });
}

kernel! {
    fn forward_rows(x: Numbers<'_>, width: usize, y: &mut [f32]) {
        match x {
            Numbers::F32(x) => number::copy(x, y),
            Numbers::Bf16(x) => number::copy(x, y),
        }
        for y in y.chunks_exact_mut(width.max(1)) {
            let max = number::max(y);
            assert!(max > f32::NEG_INFINITY, "softmax: a row has no score above −∞");
            for y in &mut *y {
                *y = exp(*y - max);
            }
            let scale = 1.0 / number::sum(y, |e| e);
            for y in y {
                *y *= scale;
            }
        }
    }
}

kernel! {
    fn backward_rows(p: &[f32], width: usize, g: &mut [f32]) {
        for (p, g) in p.chunks_exact(width.max(1)).zip(g.chunks_exact_mut(width.max(1))) {
            // y_j = e^{x_j − m} / Σ_k e^{x_k − m}
            let dot = number::sum_of_two(p, g, |p, g| p * g);
            for (g, p) in g.iter_mut().zip(p) {
                *g = p * (*g - dot);
            }
        }
    }
}
