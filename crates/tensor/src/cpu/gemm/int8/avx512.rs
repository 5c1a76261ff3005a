//! The int8 epilogue, and the quantization of rows, in AVX-512. For the plain Rust versions the compiler emits
//! gathers and detours through memory here.

use std::arch::x86_64::*;

use super::product::Block;
use super::rows::{MAGNITUDE, largest_magnitude, round};
use super::{ROUND, STRIP, scale_of};
use crate::cpu::gemm::Rectifier;
use crate::cpu::simd::LANES;

/// Scales a block of sums, applies the epilogue and writes it: row `r` at `to + r · stride`.
///
/// # Safety
/// AVX-512 must be available, the rows must be writable and exclusive to the caller, and the bias as long as
/// a strip.
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
                    // With a NaN, max returns the second operand.
                    numbers = _mm512_max_ps(numbers, zero);
                }
                _mm512_storeu_ps(to.add(row * stride + half), numbers);
            }
        }
    }
}

/// Quantizes a row; returns its scale, and the sum of its integers.
///
/// # Safety
/// AVX-512 must be available.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn quantize_row(values: &[f32], out: &mut [i8]) -> (f32, i32) {
    let (values, values_rest) = values.as_chunks::<LANES>();
    let (out, out_rest) = out.as_chunks_mut::<LANES>();
    let mut largest = _mm512_setzero_si512();
    for values in values {
        // SAFETY: sixteen values.
        let bits = unsafe { _mm512_loadu_si512(values.as_ptr().cast()) };
        largest = _mm512_max_epu32(largest, _mm512_and_si512(bits, _mm512_set1_epi32(MAGNITUDE as i32)));
    }
    let largest = _mm512_reduce_max_epu32(largest).max(largest_magnitude(values_rest));
    let (scale, inverse) = scale_of(f32::from_bits(largest));
    let mut sums = _mm512_setzero_si512();
    for (values, out) in values.iter().zip(out) {
        // SAFETY: sixteen values and integers.
        unsafe {
            let values = _mm512_mul_ps(_mm512_loadu_ps(values.as_ptr()), _mm512_set1_ps(inverse));
            let bits = _mm512_castps_si512(_mm512_add_ps(values, _mm512_set1_ps(ROUND)));
            let bytes = _mm512_cvtepi32_epi8(bits);
            _mm_storeu_si128(out.as_mut_ptr().cast(), bytes);
            sums = _mm512_add_epi32(sums, _mm512_cvtepi8_epi32(bytes));
        }
    }
    (scale, _mm512_reduce_add_epi32(sums) + round(values_rest, inverse, out_rest))
}
