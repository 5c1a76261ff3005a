//! The int8 epilogue in AVX-512. For the plain Rust version in `product` the compiler emits gathers and
//! detours through memory here.

use std::arch::x86_64::*;

use super::{STRIP, product::Block};
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
