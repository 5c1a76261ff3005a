//! Gates of some rows in a task.

use std::ops::Range;

use crate::Array;
use crate::cpu::math::exp;
use crate::cpu::number::{Number, Numbers, NumbersMut, SharedNumbers};
use crate::cpu::threads::parallel;

/// Elements of one task, about.
const CHUNK: usize = 16 * 1024;

/// `y = a ∘ σ(b)`.
pub(super) fn forward(x: &Array) -> Array {
    let (rows, width) = (x.rows(), x.width());
    let mut y = Array::scratch(x.dtype(), rows, width / 2);
    let (numbers, out) = (Numbers::of(x), SharedNumbers::of(&mut y));
    in_rows(rows, width, |rows| {
        // SAFETY: tasks have disjoint rows.
        let out = unsafe { out.slice(rows.start * width / 2..rows.end * width / 2) };
        forward_part(numbers.part(rows.start * width..rows.end * width), width / 2, out);
    });
    y
}

/// `[da | db]`.
pub(super) fn backward(x: &Array, g: &Array) -> Array {
    let (rows, width) = (x.rows(), x.width());
    let mut dx = Array::scratch(x.dtype(), rows, width);
    let (x, g, out) = (Numbers::of(x), Numbers::of(g), SharedNumbers::of(&mut dx));
    in_rows(rows, width, |rows| {
        let (whole, half) =
            (rows.start * width..rows.end * width, rows.start * width / 2..rows.end * width / 2);
        // SAFETY: tasks have disjoint rows.
        let out = unsafe { out.slice(whole.clone()) };
        backward_part(x.part(whole), g.part(half), width / 2, out);
    });
    dx
}

fn in_rows(rows: usize, width: usize, work: impl Fn(Range<usize>) + Sync) {
    let together = (CHUNK / width.max(1)).max(1);
    parallel(rows.div_ceil(together), |task| work(task * together..((task + 1) * together).min(rows)));
}

kernel! {
    fn forward_part(x: Numbers<'_>, d: usize, y: NumbersMut<'_>) {
        match (x, y) {
            (Numbers::F32(x), NumbersMut::F32(y)) => forward_rows(x, d, y),
            (Numbers::Bf16(x), NumbersMut::Bf16(y)) => forward_rows(x, d, y),
            _ => unreachable!("x and y have one type"),
        }
    }
}

kernel! {
    fn backward_part(x: Numbers<'_>, g: Numbers<'_>, d: usize, dx: NumbersMut<'_>) {
        match (x, g, dx) {
            (Numbers::F32(x), Numbers::F32(g), NumbersMut::F32(dx)) => backward_rows(x, g, d, dx),
            (Numbers::Bf16(x), Numbers::Bf16(g), NumbersMut::Bf16(dx)) => backward_rows(x, g, d, dx),
            _ => unreachable!("x, dy and dx have one type"),
        }
    }
}

#[inline(always)]
fn forward_rows<T: Number>(x: &[T], d: usize, y: &mut [T]) {
    for (x, y) in x.chunks_exact((2 * d).max(1)).zip(y.chunks_exact_mut(d.max(1))) {
        let (a, b) = x.split_at(d);
        for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
            *y = T::nearest(a.wide() * gate(b.wide()));
        }
    }
}

#[inline(always)]
fn backward_rows<T: Number>(x: &[T], g: &[T], d: usize, dx: &mut [T]) {
    let rows = x.chunks_exact((2 * d).max(1)).zip(g.chunks_exact(d.max(1)));
    for ((x, g), dx) in rows.zip(dx.chunks_exact_mut((2 * d).max(1))) {
        let ((a, b), (da, db)) = (x.split_at(d), dx.split_at_mut(d));
        for (((da, db), g), (a, b)) in da.iter_mut().zip(db).zip(g).zip(a.iter().zip(b)) {
            // y = a ∘ σ(b)
            let open = gate(b.wide());
            *da = T::nearest(g.wide() * open);
            *db = T::nearest(g.wide() * a.wide() * (open * (1.0 - open)));
        }
    }
}

#[inline(always)]
fn gate(b: f32) -> f32 {
    1.0 / (1.0 + exp(-b))
}
