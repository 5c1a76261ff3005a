//! The sum of exponentials in AVX-512: with fused multiply-add it takes half as long as what the compiler makes of it.

use std::arch::x86_64::*;

use crate::cpu::avx512::exp;
use crate::cpu::simd::LANES;

/// Vectors of one round: their sums do not wait for each other.
const VECTORS: usize = 4;

/// `Σ e^{x − top}`
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn sum_of_powers(scores: &[f32], top: f32) -> f32 {
    let top = _mm512_set1_ps(top);
    let mut sums = [_mm512_setzero_ps(); VECTORS];
    let (rounds, rest) = scores.as_chunks::<{ VECTORS * LANES }>();
    for round in rounds {
        for (sum, vector) in sums.iter_mut().zip(round.as_chunks::<LANES>().0) {
            // SAFETY: sixteen numbers.
            let x = unsafe { _mm512_loadu_ps(vector.as_ptr()) };
            *sum = _mm512_add_ps(*sum, exp(_mm512_sub_ps(x, top)));
        }
    }
    for (sum, vector) in sums.iter_mut().zip(rest.chunks(LANES)) {
        let present = ((1_u32 << vector.len()) - 1) as __mmask16;
        // SAFETY: the mask ends with the numbers.
        let x = unsafe { _mm512_mask_loadu_ps(top, present, vector.as_ptr()) };
        *sum = _mm512_mask_add_ps(*sum, present, *sum, exp(_mm512_sub_ps(x, top)));
    }
    let [a, b, c, d] = sums;
    _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(a, b), _mm512_add_ps(c, d)))
}
