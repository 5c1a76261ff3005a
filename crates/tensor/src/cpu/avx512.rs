//! Functions on sixteen f32, for which AVX-512 has better instructions than the compiler chooses.

use std::arch::x86_64::*;

/// `e^x` of sixteen values, to about one unit in the last place; 0 for −∞, NaN for NaN.
///
/// As [`super::math::exp`], with fused multiply-add, and `scalef` in place of building `2^n` from bits.
#[inline]
#[target_feature(enable = "avx512f")]
pub(crate) fn exp(x: __m512) -> __m512 {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    // Clamp so that the result is still 0 or ∞ and the remainder finite. (With a NaN, max and min return the
    // second operand.)
    let x = _mm512_min_ps(_mm512_set1_ps(200.0), _mm512_max_ps(_mm512_set1_ps(-200.0), x));
    let n = _mm512_roundscale_ps::<NEAREST>(_mm512_mul_ps(x, _mm512_set1_ps(std::f32::consts::LOG2_E)));
    let r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693_359_4), x);
    let r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.121_944_4e-4), r);
    let mut p = _mm512_set1_ps(1.987_569_1e-4);
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_6e-1, 0.5, 1.0, 1.0] {
        p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(coefficient));
    }
    _mm512_scalef_ps(p, n)
}

/// Sixteen bf16, widened.
///
/// # Safety
/// 32 bytes must be readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
pub(crate) unsafe fn load_bf16(from: *const half::bf16) -> __m512 {
    // SAFETY: the caller's promise.
    let halves = unsafe { _mm256_loadu_si256(from.cast()) };
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::isa::Isa;

    #[test]
    fn exp_matches_double_precision_and_has_the_right_limits() {
        if !Isa::Avx512.is_available() {
            return;
        }
        let values: Vec<f32> = (0..20_000).map(|i| -100.0 + i as f32 * 0.0094).collect();
        for x in values.chunks_exact(16) {
            let mut y = [0.0_f32; 16];
            // SAFETY: AVX-512 is available; 16 values on both sides.
            unsafe { _mm512_storeu_ps(y.as_mut_ptr(), exp(_mm512_loadu_ps(x.as_ptr()))) };
            for (&x, &y) in x.iter().zip(&y) {
                let exact = f64::from(x).exp();
                assert!(
                    (f64::from(y) - exact).abs() <= 2.5e-7 * exact + 1e-38,
                    "exp({x}) = {y}, not {exact}"
                );
            }
        }
        let ends = [f32::NEG_INFINITY, -1e30, -200.0, 0.0, 100.0, 1e30, f32::INFINITY, f32::NAN];
        let mut x = [0.0_f32; 16];
        x[..8].copy_from_slice(&ends);
        let mut y = [0.0_f32; 16];
        // SAFETY: as above.
        unsafe { _mm512_storeu_ps(y.as_mut_ptr(), exp(_mm512_loadu_ps(x.as_ptr()))) };
        assert_eq!(y[..7], [0.0, 0.0, 0.0, 1.0, f32::INFINITY, f32::INFINITY, f32::INFINITY]);
        assert!(y[7].is_nan());
    }
}
