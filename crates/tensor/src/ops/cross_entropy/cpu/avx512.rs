//! A row of bf16 scores in AVX-512: what `rows::row_losses` says in plain Rust, 32 classes at a time.

use std::arch::x86_64::*;

use half::bf16;

use super::rows::Found;
use crate::cpu::avx512::{exp, load_bf16, store_bf16};
use crate::ops::cross_entropy::Target;

/// Classes of one round.
const ROUND: usize = 32;

/// Replaces the scores by the slopes of the loss; returns the losses. `e` is scratch for a row.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) fn row(z: &mut [bf16], label: usize, target: Target, e: &mut [f32]) -> [f32; 3] {
    assert!(e.len() >= z.len());
    let z_label = z[label].to_f32();
    // Classes past the last whole round wait in a round of their own, filled up with −∞: those add nothing.
    let whole = z.len() / ROUND * ROUND;
    let mut rest = [bf16::NEG_INFINITY; ROUND];
    rest[..z.len() - whole].copy_from_slice(&z[whole..]);
    let mut rest_e = [0.0_f32; ROUND];

    let mut tops = [_mm512_set1_ps(f32::NEG_INFINITY); 2];
    for z in z[..whole].chunks_exact(ROUND).chain([&rest[..]]) {
        let [low, high] = load(z);
        // The new value second: a NaN goes on.
        tops = [_mm512_max_ps(tops[0], low), _mm512_max_ps(tops[1], high)];
    }
    let top = _mm512_reduce_max_ps(_mm512_max_ps(tops[0], tops[1]));

    let mut sums = [_mm512_setzero_ps(); 4];
    let below = _mm512_set1_ps(top);
    for (z, e) in z[..whole].chunks_exact(ROUND).zip(e.chunks_exact_mut(ROUND)) {
        let below = load(z).map(|z| _mm512_sub_ps(z, below));
        let powers = [exp(below[0]), exp(below[1])];
        sums = [
            _mm512_add_ps(sums[0], below[0]),
            _mm512_add_ps(sums[1], below[1]),
            _mm512_add_ps(sums[2], powers[0]),
            _mm512_add_ps(sums[3], powers[1]),
        ];
        save(powers, e);
    }
    let mut z_sum = _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]));
    let mut total = _mm512_reduce_add_ps(_mm512_add_ps(sums[2], sums[3]));
    let rest_below = load(&rest).map(|z| _mm512_sub_ps(z, below));
    save([exp(rest_below[0]), exp(rest_below[1])], &mut rest_e);
    for (z, e) in z[whole..].iter().zip(&rest_e) {
        z_sum += z.to_f32() - top;
        total += e;
    }

    let found = Found { z_label, top, z_sum, total };
    let slope = found.slope(target);
    let (scale, others) = (_mm512_set1_ps(slope.scale), _mm512_set1_ps(slope.others));
    let label_e = if label < whole { e[label] } else { rest_e[label - whole] };
    for (z, e) in z[..whole].chunks_exact_mut(ROUND).zip(e.chunks_exact(ROUND)) {
        // SAFETY: 32 numbers on both sides.
        unsafe {
            let low = _mm512_fmsub_ps(_mm512_loadu_ps(e.as_ptr()), scale, others);
            let high = _mm512_fmsub_ps(_mm512_loadu_ps(e.as_ptr().add(16)), scale, others);
            store_bf16(low, high, z.as_mut_ptr());
        }
    }
    for (z, e) in z[whole..].iter_mut().zip(&rest_e) {
        *z = bf16::from_f32(e * slope.scale - slope.others);
    }
    z[label] = bf16::from_f32(label_e * slope.scale - slope.label);
    found.losses(target)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn load(z: &[bf16]) -> [__m512; 2] {
    assert!(z.len() >= ROUND);
    // SAFETY: 32 numbers are there.
    unsafe { [load_bf16(z.as_ptr()), load_bf16(z.as_ptr().add(16))] }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn save(values: [__m512; 2], to: &mut [f32]) {
    assert!(to.len() >= ROUND);
    // SAFETY: 32 numbers fit.
    unsafe {
        _mm512_storeu_ps(to.as_mut_ptr(), values[0]);
        _mm512_storeu_ps(to.as_mut_ptr().add(16), values[1]);
    }
}
