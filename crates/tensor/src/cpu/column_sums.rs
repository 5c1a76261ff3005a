//! Sums over rows: the gradient of a vector that was added to every row.

use crate::cpu::number::{Number, Numbers};
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType};

/// Rows of one partial sum.
const ROWS: usize = 128;

/// `sums += Σ_rows x`, for rows as wide as `sums`. Rows are summed in chunks of a fixed size, and the chunks'
/// sums are added in order: the result does not depend on the number of threads.
pub(crate) fn add_column_sums(x: Numbers<'_>, sums: &mut [f32]) {
    let width = sums.len().max(1);
    let rows = x.len() / width;
    let chunks = rows.div_ceil(ROWS);
    let mut partial = Array::zeros(DType::F32, chunks, width);
    let shared = SharedMut::new(partial.f32_mut());
    parallel(chunks, |chunk| {
        let part = chunk * ROWS * width..((chunk + 1) * ROWS).min(rows) * width;
        // SAFETY: each chunk has its own row.
        let sums = unsafe { shared.slice(chunk * width..(chunk + 1) * width) };
        add_rows(x.part(part), sums);
    });
    add_rows(Numbers::F32(partial.f32()), sums);
}

kernel! {
    fn add_rows(rows: Numbers<'_>, sums: &mut [f32]) {
        match rows {
            Numbers::F32(rows) => add_each_row(rows, sums),
            Numbers::Bf16(rows) => add_each_row(rows, sums),
        }
    }
}

#[inline(always)]
fn add_each_row<T: Number>(rows: &[T], sums: &mut [f32]) {
    for row in rows.chunks_exact(sums.len().max(1)) {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += x.wide();
        }
    }
}
