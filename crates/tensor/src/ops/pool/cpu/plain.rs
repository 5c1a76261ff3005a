//! Means and maxima over the rows of a sequence.

use super::{add_scaled, each_sequence, elements, scaled, store};
use crate::cpu::number::{Number, Numbers, NumbersMut, SharedNumbers};
use crate::{Array, DType, Ragged};

/// `Σ_t v_t / n`.
pub(in crate::ops::pool) fn mean(values: &Array, sequences: &Ragged) -> Array {
    let width = values.width();
    let mut pooled = Array::scratch(values.dtype(), sequences.sequences(), width);
    let (numbers, out) = (Numbers::of(values), SharedNumbers::of(&mut pooled));
    each_sequence(sequences, |sequence, rows| {
        let mut sums = Array::zeros(DType::F32, 1, width);
        let share = 1.0 / rows.len() as f32;
        for row in rows {
            add_scaled(1.0, numbers.part(elements(&(row..row + 1), width)), sums.f32_mut());
        }
        // SAFETY: every sequence has its own row.
        store(share, sums.f32(), unsafe { out.slice(elements(&(sequence..sequence + 1), width)) });
    });
    pooled
}

/// `dv_t = dy / n`.
pub(in crate::ops::pool) fn mean_backward(g: &Array, sequences: &Ragged) -> Array {
    let width = g.width();
    let mut dv = Array::scratch(g.dtype(), sequences.tokens(), width);
    let out = SharedNumbers::of(&mut dv);
    each_sequence(sequences, |sequence, rows| {
        let dy = Numbers::of(g).part(elements(&(sequence..sequence + 1), width));
        let share = 1.0 / rows.len() as f32;
        for row in rows {
            // SAFETY: sequences have disjoint rows.
            scaled(share, dy, unsafe { out.slice(elements(&(row..row + 1), width)) });
        }
    });
    dv
}

/// `dv_t = dy` where `v_t` is the first that reaches the maximum of its column, else 0; `g` is used up.
pub(in crate::ops::pool) fn max_backward(values: &Array, mut g: Array, sequences: &Ragged) -> Array {
    let (width, tops) = (g.width(), max(values, sequences));
    let mut dv = Array::scratch(g.dtype(), sequences.tokens(), width);
    let (values, tops) = (Numbers::of(values), Numbers::of(&tops));
    let (g, out) = (SharedNumbers::of(&mut g), SharedNumbers::of(&mut dv));
    each_sequence(sequences, |sequence, rows| {
        let (own, all) = (elements(&(sequence..sequence + 1), width), elements(&rows, width));
        // SAFETY: sequences have disjoint rows of the values, and each its own row of g.
        let (g, out) = unsafe { (g.slice(own.clone()), out.slice(all.clone())) };
        hand_over(values.part(all), tops.part(own), g, out);
    });
    dv
}

/// `max_t v_t`.
pub(in crate::ops::pool) fn max(values: &Array, sequences: &Ragged) -> Array {
    let width = values.width();
    let mut tops = Array::scratch(values.dtype(), sequences.sequences(), width);
    let (numbers, out) = (Numbers::of(values), SharedNumbers::of(&mut tops));
    each_sequence(sequences, |sequence, rows| {
        // SAFETY: every sequence has its own row.
        let out = unsafe { out.slice(elements(&(sequence..sequence + 1), width)) };
        largest(numbers.part(elements(&rows, width)), out);
    });
    tops
}

kernel! {
    fn largest(rows: Numbers<'_>, out: NumbersMut<'_>) {
        match (rows, out) {
            (Numbers::F32(rows), NumbersMut::F32(out)) => largest_of(rows, out),
            (Numbers::Bf16(rows), NumbersMut::Bf16(out)) => largest_of(rows, out),
            _ => unreachable!("the result has the type of the values"),
        }
    }
}

#[inline(always)]
fn largest_of<T: Number>(rows: &[T], out: &mut [T]) {
    let width = out.len().max(1);
    for (number, row) in rows.chunks_exact(width).enumerate() {
        for (out, x) in out.iter_mut().zip(row) {
            // A NaN comes through: what is not larger than a number and not a number either wins as well.
            if number == 0 || x.wide() > out.wide() || x.wide().is_nan() {
                *out = *x;
            }
        }
    }
}

kernel! {
    fn hand_over(rows: Numbers<'_>, tops: Numbers<'_>, g: NumbersMut<'_>, out: NumbersMut<'_>) {
        match (rows, tops, g, out) {
            (Numbers::F32(rows), Numbers::F32(tops), NumbersMut::F32(g), NumbersMut::F32(out)) => {
                hand_over_rows(rows, tops, g, out);
            }
            (Numbers::Bf16(rows), Numbers::Bf16(tops), NumbersMut::Bf16(g), NumbersMut::Bf16(out)) => {
                hand_over_rows(rows, tops, g, out);
            }
            _ => unreachable!("a gradient has the type of its values"),
        }
    }
}

/// The first row that reaches the top takes the gradient and leaves 0 for those that reach it later.
#[inline(always)]
fn hand_over_rows<T: Number>(rows: &[T], tops: &[T], g: &mut [T], out: &mut [T]) {
    let width = g.len().max(1);
    for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        for (((out, g), x), top) in out.iter_mut().zip(&mut *g).zip(row).zip(tops) {
            let reaches = x.wide() == top.wide();
            *out = if reaches { *g } else { T::nearest(0.0) };
            *g = if reaches { T::nearest(0.0) } else { *g };
        }
    }
}
