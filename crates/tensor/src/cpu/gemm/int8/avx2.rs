//! AVX2 for rows that were [split](super::split).

use std::arch::x86_64::*;

use super::kernel::{Left, Sums};
use super::split::{Split, total};
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
