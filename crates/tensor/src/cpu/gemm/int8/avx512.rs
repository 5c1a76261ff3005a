//! What surrounds the products in AVX-512: `rows` and `product` say it in plain Rust, of which the compiler makes gathers and
//! detours through memory here.

use std::arch::x86_64::*;

use super::{ROUND, STRIP, product::Block, scale_of};
use crate::cpu::gemm::Rectifier;
use crate::cpu::simd::LANES;

/// Rounds a row; returns its scale, and the sum of its integers.
///
/// # Safety
/// AVX-512 must be there.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn round_row(values: &[f32], out: &mut [i8]) -> (f32, i32) {
    assert_eq!(values.len(), out.len(), "int8 rows");
    let (rest, vectors) = (values.len() % LANES, values.len() / LANES);
    let last = ((1_u32 << rest) - 1) as __mmask16;
    let magnitude = _mm512_set1_epi32(0x7fff_ffff);
    let from = values.as_ptr();
    // Two, so that no comparison waits for the one before it.
    let mut tops = [_mm512_setzero_si512(); 2];
    for vector in 0..vectors {
        // SAFETY: sixteen numbers each, here and below.
        let bits = unsafe { _mm512_loadu_si512(from.add(vector * LANES).cast()) };
        tops[vector % 2] = _mm512_max_epu32(tops[vector % 2], _mm512_and_si512(bits, magnitude));
    }
    if rest > 0 {
        // SAFETY: as many as there are.
        let bits = unsafe { _mm512_maskz_loadu_epi32(last, from.add(vectors * LANES).cast()) };
        tops[0] = _mm512_max_epu32(tops[0], _mm512_and_si512(bits, magnitude));
    }
    let top = _mm512_reduce_max_epu32(_mm512_max_epu32(tops[0], tops[1]));
    let (scale, inverse) = scale_of(f32::from_bits(top));
    let (inverse, round) = (_mm512_set1_ps(inverse), _mm512_set1_ps(ROUND));
    let nearest = |values| _mm512_castps_si512(_mm512_add_ps(_mm512_mul_ps(values, inverse), round));
    let to = out.as_mut_ptr();
    // The integer is in the last byte, whatever else is in a NaN.
    let integer = |bits| _mm512_srai_epi32::<24>(_mm512_slli_epi32::<24>(bits));
    let mut sums = _mm512_setzero_si512();
    for vector in 0..vectors {
        // SAFETY: as above.
        unsafe {
            let integers = nearest(_mm512_loadu_ps(from.add(vector * LANES)));
            _mm_storeu_si128(to.add(vector * LANES).cast(), _mm512_cvtepi32_epi8(integers));
            sums = _mm512_add_epi32(sums, integer(integers));
        }
    }
    if rest > 0 {
        // SAFETY: as above.
        unsafe {
            let integers = nearest(_mm512_maskz_loadu_ps(last, from.add(vectors * LANES)));
            _mm512_mask_cvtepi32_storeu_epi8(to.add(vectors * LANES).cast(), last, integers);
            sums = _mm512_mask_add_epi32(sums, last, sums, integer(integers));
        }
    }
    (scale, _mm512_reduce_add_epi32(sums))
}

/// Writes a block's numbers, finished: row `r` of it from `to + r · stride` on.
///
/// # Safety
/// AVX-512 must be there, the rows be places that nobody else uses, and the bias as long as a strip.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn store(
    block: &Block<'_>,
    bias: Option<&[f32]>,
    rectifier: Rectifier,
    to: *mut f32,
    stride: usize,
) {
    let zero = _mm512_setzero_ps();
    for half in (0..STRIP).step_by(LANES) {
        // SAFETY: a strip's scales and biases, here and below.
        let columns = unsafe { _mm512_loadu_ps(block.columns.as_ptr().add(half)) };
        // SAFETY: as above.
        let bias = bias.map(|bias| unsafe { _mm512_loadu_ps(bias.as_ptr().add(half)) });
        for (row, (&own, sums)) in block.rows.iter().zip(&block.sums.0).enumerate() {
            // SAFETY: sixteen sums, and the caller's promise.
            unsafe {
                let sums = _mm512_cvtepi32_ps(_mm512_loadu_si512(sums.as_ptr().add(half).cast()));
                let mut numbers = _mm512_mul_ps(sums, _mm512_mul_ps(_mm512_set1_ps(own), columns));
                if let Some(bias) = bias {
                    numbers = _mm512_add_ps(numbers, bias);
                }
                if rectifier == Rectifier::Relu {
                    // Of a NaN, max returns the second.
                    numbers = _mm512_max_ps(numbers, zero);
                }
                _mm512_storeu_ps(to.add(row * stride + half), numbers);
            }
        }
    }
}
