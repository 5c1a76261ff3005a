//! AVX2 for matrices whose [pairs](super) are not small: those of older files and of other projects.
//! The rows are split into magnitudes and signs.
//!
//! ```text
//! q w = |q| · (w xor s) + |q|·[q < 0]        s = −1 where q < 0, else 0, since −w = (w xor −1) + 1
//! ```
//!
//! Two such products are at most 2 · 127 · 128, so nothing saturates, and the second term depends on the row
//! alone. XOR runs on any of the three vector ports, whereas the sign instruction would take one of the two
//! that multiply.

use std::arch::x86_64::*;

use super::kernel::{Left, Sums};
use super::{STRIP, Tile};

/// Vectors of a strip's sums.
const QUARTERS: usize = STRIP / 8;

/// # Safety
/// The CPU must have AVX2; the left side must have its rows, at least as long as the strip is deep.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn multiply(left: Left<'_>, strip: &[Tile], sums: &mut Sums) {
    let mut row = 0;
    while row < left.rows {
        let start = left.integers.as_ptr().wrapping_add(row * left.stride);
        // SAFETY: the caller's promise.
        row += unsafe {
            match left.rows - row {
                1 => rows::<1>(start, left.stride, strip, &mut sums.0[row..]),
                _ => rows::<2>(start, left.stride, strip, &mut sums.0[row..]),
            }
        };
    }
}

#[target_feature(enable = "avx2")]
unsafe fn rows<const ROWS: usize>(
    start: *const i8,
    stride: usize,
    strip: &[Tile],
    out: &mut [[i32; STRIP]],
) -> usize {
    let ones = _mm256_set1_epi16(1);
    let mut sums = [[_mm256_setzero_si256(); QUARTERS]; ROWS];
    let mut corrections = [_mm256_setzero_si256(); ROWS];
    for (step, tiles) in strip.chunks_exact(2).enumerate() {
        let mut split = [Split::EMPTY; ROWS];
        for row in 0..ROWS {
            // SAFETY: 64 integers of each row belong to these tiles.
            let correction = unsafe { split[row].fill(start.add(row * stride + step * 64)) };
            corrections[row] = _mm256_add_epi64(corrections[row], correction);
        }
        for line in 0..16 {
            let own: [_; ROWS] =
                std::array::from_fn(|row| split[row].four(line).map(|four| _mm256_set1_epi32(four)));
            for quarter in 0..QUARTERS {
                // SAFETY: a tile has 16 lines of 64 bytes.
                let columns = unsafe {
                    let line = tiles[quarter / 2].0.as_ptr().add(line * 64 + quarter % 2 * 32);
                    _mm256_load_si256(line.cast())
                };
                for (sums, [magnitudes, signs]) in sums.iter_mut().zip(own) {
                    let pairs = _mm256_maddubs_epi16(magnitudes, _mm256_xor_si256(columns, signs));
                    sums[quarter] = _mm256_add_epi32(sums[quarter], _mm256_madd_epi16(pairs, ones));
                }
            }
        }
    }
    for ((sums, correction), out) in sums.iter().zip(corrections).zip(out) {
        let correction = _mm256_set1_epi32(total(correction));
        for (&sum, out) in sums.iter().zip(out.as_chunks_mut::<8>().0) {
            // SAFETY: eight sums.
            unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), _mm256_add_epi32(sum, correction)) };
        }
    }
    ROWS
}

/// Magnitudes and signs of 64 integers.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Split([[i32; 16]; 2]);

impl Split {
    const EMPTY: Split = Split([[0; 16]; 2]);

    /// Splits the values at `integers`; returns the sum of the magnitudes of negative ones, in four partial
    /// sums.
    ///
    /// # Safety
    /// 64 bytes must be readable.
    #[target_feature(enable = "avx2")]
    unsafe fn fill(&mut self, integers: *const i8) -> __m256i {
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
    fn four(&self, line: usize) -> [i32; 2] {
        [self.0[0][line], self.0[1][line]]
    }
}

/// The sum of partial sums.
#[target_feature(enable = "avx2")]
fn total(partial: __m256i) -> i32 {
    let half = _mm_add_epi64(_mm256_castsi256_si128(partial), _mm256_extracti128_si256::<1>(partial));
    _mm_cvtsi128_si32(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half)))
}
