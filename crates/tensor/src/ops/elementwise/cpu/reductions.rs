//! Sums in one fixed order, and their backward broadcasts.

use crate::cpu::number::{self, Numbers};
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType};

/// Elements of one partial sum of [`sum`].
const CHUNK: usize = 16 * 1024;

/// `Σ x`, 1 × 1.
pub(in crate::ops::elementwise) fn sum(x: &Array) -> Array {
    let (n, values) = (x.len(), Numbers::of(x));
    let chunks = n.div_ceil(CHUNK);
    let mut partial = Array::scratch(DType::F32, 1, chunks);
    let shared = SharedMut::new(partial.f32_mut());
    parallel(chunks, |task| {
        // SAFETY: each task has its own element.
        unsafe { shared.slice(task..task + 1) }
            .fill(sum_of(values.part(task * CHUNK..((task + 1) * CHUNK).min(n))));
    });
    let total: f64 = partial.f32().iter().map(|&sum| f64::from(sum)).sum();
    Array::from_f32(1, 1, &[total as f32])
}

/// The scalar `g`, broadcast to a shape.
pub(in crate::ops::elementwise) fn filled([rows, width]: [usize; 2], g: &Array) -> Array {
    let mut out = Array::scratch(DType::F32, rows, width);
    out.f32_mut().fill(g.f32()[0]);
    out
}

/// The sum of each row.
pub(in crate::ops::elementwise) fn row_sums(x: &Array) -> Array {
    let (rows, width) = (x.rows(), x.width());
    let mut sums = Array::zeros(DType::F32, rows, 1);
    for (row, sum) in sums.f32_mut().iter_mut().enumerate() {
        *sum = sum_of(Numbers::of(x).part(row * width..(row + 1) * width));
    }
    sums
}

/// The single column of `g`, repeated `width` times.
pub(in crate::ops::elementwise) fn repeated_column(g: &Array, width: usize) -> Array {
    let mut out = Array::scratch(DType::F32, g.rows(), width);
    for (row, &g) in out.f32_mut().chunks_exact_mut(width.max(1)).zip(g.f32()) {
        row.fill(g);
    }
    out
}

kernel! {
    fn sum_of(values: Numbers<'_>) -> f32 {
        match values {
            Numbers::F32(values) => number::sum(values, |x| x),
            Numbers::Bf16(values) => number::sum(values, |x| x),
        }
    }
}
