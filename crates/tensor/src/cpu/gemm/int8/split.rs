//! Products of signed bytes for CPUs that multiply unsigned by signed bytes and add pairs of products with
//! saturation to 16 bits.
//!
//! ```text
//! q w = |q| · (w xor s) + |q|·[q < 0]        s = −1 where q < 0, else 0, since −w = (w xor −1) + 1
//! ```
//!
//! Two such products are at most 2 · 127 · 128, so nothing saturates, and the second term depends on the row
//! alone. XOR runs on any of the three vector ports, whereas the sign instruction would take one of the two
//! that multiply.

use std::arch::x86_64::*;

/// Magnitudes and signs of 64 integers.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Split([[i32; 16]; 2]);

impl Split {
    pub(super) const EMPTY: Split = Split([[0; 16]; 2]);

    /// Splits the values at `integers`; returns the sum of the magnitudes of negative ones, in four partial
    /// sums.
    ///
    /// # Safety
    /// 64 bytes must be readable.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn fill(&mut self, integers: *const i8) -> __m256i {
        let zero = _mm256_setzero_si256();
        let mut correction = zero;
        for half in 0..2 {
            // SAFETY: the caller's promise; a half is eight 32-bit integers.
            unsafe {
                let integers = _mm256_loadu_si256(integers.add(half * 32).cast());
                let (magnitudes, signs) = (_mm256_abs_epi8(integers), _mm256_cmpgt_epi8(zero, integers));
                _mm256_store_si256(self.0[0].as_mut_ptr().add(half * 8).cast(), magnitudes);
                _mm256_store_si256(self.0[1].as_mut_ptr().add(half * 8).cast(), signs);
                let negative = _mm256_sad_epu8(_mm256_and_si256(magnitudes, signs), zero);
                correction = _mm256_add_epi64(correction, negative);
            }
        }
        correction
    }

    /// Magnitudes and signs of the four integers that are multiplied with a line.
    #[inline(always)]
    pub(super) fn four(&self, line: usize) -> [i32; 2] {
        [self.0[0][line], self.0[1][line]]
    }
}

/// The sum of partial sums.
#[target_feature(enable = "avx2")]
pub(super) fn total(partial: __m256i) -> i32 {
    let half = _mm_add_epi64(_mm256_castsi256_si128(partial), _mm256_extracti128_si256::<1>(partial));
    _mm_cvtsi128_si32(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half)))
}
