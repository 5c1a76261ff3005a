//! Type conversions and sums of arrays in host memory.

use super::Array;
use crate::DType;
use crate::cpu::convert::{narrow, widen};
use crate::cpu::number::{Numbers, NumbersMut, SharedNumbers, add_each};
use crate::cpu::threads::{SharedMut, parallel};

/// Elements that one task converts: large enough to amortise the dispatch, small enough to spread over
/// threads.
const CONVERTED: usize = 32 * 1024;

/// Copies `from` into `to`, which has the same number of elements, in `to`'s type.
pub(super) fn convert(from: &Array, to: &mut Array) {
    assert_eq!(from.len(), to.len(), "convert: {from:?} to {to:?}");
    let n = from.len();
    match (from.dtype(), to.dtype()) {
        (DType::F32, DType::F32) => in_chunks(n, from.f32(), to.f32_mut(), |a, b| b.copy_from_slice(a)),
        (DType::Bf16, DType::Bf16) => in_chunks(n, from.bf16(), to.bf16_mut(), |a, b| b.copy_from_slice(a)),
        (DType::F32, DType::Bf16) => in_chunks(n, from.f32(), to.bf16_mut(), narrow),
        (DType::Bf16, DType::F32) => in_chunks(n, from.bf16(), to.f32_mut(), widen),
    }
}

fn in_chunks<A: Sync, B: Send>(n: usize, from: &[A], to: &mut [B], work: impl Fn(&[A], &mut [B]) + Sync) {
    let to = SharedMut::new(to);
    parallel(n.div_ceil(CONVERTED), |task| {
        let range = task * CONVERTED..((task + 1) * CONVERTED).min(n);
        // SAFETY: tasks have disjoint ranges.
        work(&from[range.clone()], unsafe { to.slice(range) });
    });
}

/// Elements that one task adds.
pub(super) const ADDED: usize = 16 * 1024;

/// `sum += other`, in `sum`'s type.
pub(super) fn add(sum: &mut Array, other: &Array) {
    let (n, other) = (sum.len(), Numbers::of(other));
    let sum = SharedNumbers::of(sum);
    parallel(n.div_ceil(ADDED), |task| {
        let range = task * ADDED..((task + 1) * ADDED).min(n);
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
