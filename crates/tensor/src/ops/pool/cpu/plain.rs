//! Means and maxima over the rows of a sequence.

use std::ops::Range;

use crate::cpu::number::{self, Number};
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType, Ragged};

/// `Σ_t v_t / n`.
pub(in crate::ops::pool) fn mean(values: &Array, sequences: &Ragged) -> Array {
    let width = values.width();
    let mut pooled = Array::scratch(values.dtype(), sequences.sequences(), width);
    by_type!(values.dtype(), T => {
        let (values, out) = (T::of(values), SharedMut::new(T::of_mut(&mut pooled)));
        each_sequence(sequences, width, |own, all| {
            let mut sums = Array::zeros(DType::F32, 1, width);
            let share = 1.0 / (all.len() / width) as f32;
            for row in values[all].chunks_exact(width) {
                add(row, sums.f32_mut());
            }
            // SAFETY: every sequence has its own row.
            scale_sums(share, sums.f32(), unsafe { out.slice(own) });
        });
    });
    pooled
}

/// `dv_t = dy / n`.
pub(in crate::ops::pool) fn mean_backward(g: &Array, sequences: &Ragged) -> Array {
    let width = g.width();
    let mut dv = Array::scratch(g.dtype(), sequences.tokens(), width);
    by_type!(g.dtype(), T => {
        let (g, out) = (T::of(g), SharedMut::new(T::of_mut(&mut dv)));
        each_sequence(sequences, width, |own, all| {
            let share = 1.0 / (all.len() / width) as f32;
            // SAFETY: sequences have disjoint rows.
            for row in unsafe { out.slice(all) }.chunks_exact_mut(width) {
                scale(share, &g[own.clone()], row);
            }
        });
    });
    dv
}

/// `dv_t = dy` where `v_t` is the first maximum of its column, else 0; `g` is overwritten.
pub(in crate::ops::pool) fn max_backward(values: &Array, mut g: Array, sequences: &Ragged) -> Array {
    let (width, tops) = (g.width(), max(values, sequences));
    let mut dv = Array::scratch(g.dtype(), sequences.tokens(), width);
    by_type!(g.dtype(), T => {
        let (values, tops) = (T::of(values), T::of(&tops));
        let (g, out) = (SharedMut::new(T::of_mut(&mut g)), SharedMut::new(T::of_mut(&mut dv)));
        each_sequence(sequences, width, |own, all| {
            // SAFETY: sequences have disjoint rows of the values, and each its own row of g.
            let (g, out) = unsafe { (g.slice(own.clone()), out.slice(all.clone())) };
            route_gradient(&values[all], &tops[own], g, out);
        });
    });
    dv
}

/// `max_t v_t`.
pub(in crate::ops::pool) fn max(values: &Array, sequences: &Ragged) -> Array {
    let width = values.width();
    let mut tops = Array::scratch(values.dtype(), sequences.sequences(), width);
    by_type!(values.dtype(), T => {
        let (values, out) = (T::of(values), SharedMut::new(T::of_mut(&mut tops)));
        each_sequence(sequences, width, |own, all| {
            // SAFETY: every sequence has its own row.
            largest(&values[all], unsafe { out.slice(own) });
        });
    });
    tops
}

/// Calls `work` with the element ranges of every sequence's own row, and of its tokens.
fn each_sequence(sequences: &Ragged, width: usize, work: impl Fn(Range<usize>, Range<usize>) + Sync) {
    // Without columns there is nothing to do.
    let count = if width == 0 { 0 } else { sequences.sequences() };
    parallel(count, |sequence| {
        let rows = sequences.range(sequence);
        work(sequence * width..(sequence + 1) * width, rows.start * width..rows.end * width);
    });
}

kernel! {
    /// `sums += row`.
    fn add<T: Number>(row: &[T], sums: &mut [f32]) {
        number::add_each(sums, row);
    }
}

kernel! {
    /// `out = factor · row`.
    fn scale<T: Number>(factor: f32, row: &[T], out: &mut [T]) {
        for (out, x) in out.iter_mut().zip(row) {
            *out = T::nearest(factor * x.wide());
        }
    }
}

kernel! {
    /// `out = factor · sums`, rounded.
    fn scale_sums<T: Number>(factor: f32, sums: &[f32], out: &mut [T]) {
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = T::nearest(factor * sum);
        }
    }
}

kernel! {
    fn largest<T: Number>(rows: &[T], out: &mut [T]) {
        for (number, row) in rows.chunks_exact(out.len()).enumerate() {
            for (out, x) in out.iter_mut().zip(row) {
                // NaN propagates: it is not larger than any number, so it is checked separately.
                if number == 0 || x.wide() > out.wide() || x.wide().is_nan() {
                    *out = *x;
                }
            }
        }
    }
}

kernel! {
    /// The first row that has the maximum takes the gradient; later ones get 0.
    fn route_gradient<T: Number>(rows: &[T], tops: &[T], g: &mut [T], out: &mut [T]) {
        let width = g.len();
        for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
            for (((out, g), x), top) in out.iter_mut().zip(&mut *g).zip(row).zip(tops) {
                let reaches = x.wide() == top.wide();
                *out = if reaches { *g } else { T::nearest(0.0) };
                *g = if reaches { T::nearest(0.0) } else { *g };
            }
        }
    }
}
