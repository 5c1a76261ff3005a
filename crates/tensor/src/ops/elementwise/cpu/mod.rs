//! The kernels of the neighbouring files, each under its file's name.

mod blocks;
mod product;
mod reductions;
mod shape;

pub(super) use blocks::binary;
pub(super) use product::{left_gradient, product, right_gradient};
pub(super) use reductions::{filled, repeated_column, row_sums, sum};
pub(super) use shape::{copy, gathered_rows, scattered_rows};

use crate::Array;
use crate::cpu::number::{Number, Numbers, NumbersMut, SharedNumbers};
use crate::cpu::threads::parallel;

/// Elements of one task of [`add_in_place`].
pub(super) const CHUNK: usize = 16 * 1024;

/// `sum += other`, in `sum`'s type.
pub(super) fn add_in_place(sum: &mut Array, other: &Array) {
    let (n, other) = (sum.len(), Numbers::of(other));
    let sum = SharedNumbers::of(sum);
    parallel(n.div_ceil(CHUNK), |task| {
        let range = task * CHUNK..((task + 1) * CHUNK).min(n);
        // SAFETY: tasks have disjoint ranges.
        add_chunk(unsafe { sum.slice(range.clone()) }, other.part(range));
    });
}

kernel! {
    fn add_chunk(sum: NumbersMut<'_>, other: Numbers<'_>) {
        match (sum, other) {
            (NumbersMut::F32(sum), Numbers::F32(other)) => add_each(sum, other),
            (NumbersMut::F32(sum), Numbers::Bf16(other)) => add_each(sum, other),
            (NumbersMut::Bf16(sum), Numbers::F32(other)) => add_each(sum, other),
            (NumbersMut::Bf16(sum), Numbers::Bf16(other)) => add_each(sum, other),
        }
    }
}

#[inline(always)]
fn add_each<A: Number, B: Number>(sum: &mut [A], other: &[B]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum = A::nearest(sum.wide() + other.wide());
    }
}
