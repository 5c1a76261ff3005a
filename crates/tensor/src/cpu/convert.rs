//! Between f32 and bf16.

use half::bf16;

use crate::cpu::math::to_bf16_bits;
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType};

/// Elements one task converts: large enough to be worth a hand-over, small enough to share out.
const CHUNK: usize = 32 * 1024;

/// Writes `from` into `to` (as many elements), in `to`'s type.
pub(crate) fn convert(from: &Array, to: &mut Array) {
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
    parallel(n.div_ceil(CHUNK), |task| {
        let range = task * CHUNK..((task + 1) * CHUNK).min(n);
        // SAFETY: tasks have disjoint ranges.
        work(&from[range.clone()], unsafe { to.slice(range) });
    });
}

kernel! {
    /// f32 → bf16, rounded to nearest even.
    pub(crate) fn narrow(from: &[f32], to: &mut [bf16]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = bf16::from_bits(to_bf16_bits(from));
        }
    }
}

kernel! {
    /// bf16 → f32, exact.
    pub(crate) fn widen(from: &[bf16], to: &mut [f32]) {
        for (to, &from) in to.iter_mut().zip(from) {
            *to = crate::cpu::math::from_bf16_bits(from.to_bits());
        }
    }
}
