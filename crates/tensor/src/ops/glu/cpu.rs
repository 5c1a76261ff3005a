//! The gates, some rows for each task.

use std::ops::Range;

use crate::Array;
use crate::cpu::math::exp;
use crate::cpu::number::Number;
use crate::cpu::threads::{SharedMut, parallel};

/// Approximate number of elements of one task.
const CHUNK: usize = 16 * 1024;

/// `y = a ∘ σ(b)`.
pub(super) fn forward(x: &Array) -> Array {
    let mut y = Array::scratch(x.dtype(), x.rows(), x.width() / 2);
    by_type!(x.dtype(), T => {
        let (x_values, out) = (T::of(x), SharedMut::new(T::of_mut(&mut y)));
        in_rows(x.rows(), x.width(), |whole, half| {
            // SAFETY: tasks have disjoint rows.
            forward_rows(&x_values[whole], x.width() / 2, unsafe { out.slice(half) });
        });
    });
    y
}

/// `[da | db]`.
pub(super) fn backward(x: &Array, g: &Array) -> Array {
    let mut dx = Array::scratch(x.dtype(), x.rows(), x.width());
    by_type!(x.dtype(), T => {
        let (x_values, g, out) = (T::of(x), T::of(g), SharedMut::new(T::of_mut(&mut dx)));
        in_rows(x.rows(), x.width(), |whole, half| {
            // SAFETY: tasks have disjoint rows.
            let out = unsafe { out.slice(whole.clone()) };
            backward_rows(&x_values[whole], &g[half], x.width() / 2, out);
        });
    });
    dx
}

/// Calls `work` with the ranges of elements of some rows, at full width and at half the width.
fn in_rows(rows: usize, width: usize, work: impl Fn(Range<usize>, Range<usize>) + Sync) {
    let task_rows = (CHUNK / width.max(1)).max(1);
    parallel(rows.div_ceil(task_rows), |task| {
        let rows = task * task_rows..((task + 1) * task_rows).min(rows);
        work(rows.start * width..rows.end * width, rows.start * width / 2..rows.end * width / 2);
    });
}

kernel! {
    fn forward_rows<T: Number>(x: &[T], d: usize, y: &mut [T]) {
        for (x, y) in x.chunks_exact((2 * d).max(1)).zip(y.chunks_exact_mut(d.max(1))) {
            let (a, b) = x.split_at(d);
            for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
                *y = T::nearest(a.wide() * sigmoid(b.wide()));
            }
        }
    }
}

kernel! {
    fn backward_rows<T: Number>(x: &[T], g: &[T], d: usize, dx: &mut [T]) {
        let rows = x.chunks_exact((2 * d).max(1)).zip(g.chunks_exact(d.max(1)));
        for ((x, g), dx) in rows.zip(dx.chunks_exact_mut((2 * d).max(1))) {
            let ((a, b), (da, db)) = (x.split_at(d), dx.split_at_mut(d));
            for (((da, db), g), (a, b)) in da.iter_mut().zip(db).zip(g).zip(a.iter().zip(b)) {
                // y = a ∘ σ(b)
                let gate = sigmoid(b.wide());
                *da = T::nearest(g.wide() * gate);
                *db = T::nearest(g.wide() * a.wide() * (gate * (1.0 - gate)));
            }
        }
    }
}

#[inline(always)]
fn sigmoid(b: f32) -> f32 {
    1.0 / (1.0 + exp(-b))
}
