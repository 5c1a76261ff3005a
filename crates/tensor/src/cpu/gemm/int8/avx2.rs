//! AVX2: products of bytes without a sign and bytes with one, two of which are summed in 16 bits. |q| ≤ 127 on both sides,
//! so two products are at most 32258 and nothing saturates.

use std::arch::x86_64::*;

use super::kernel::{Left, Sums};
use super::{STRIP, Tile};

/// # Safety
/// The machine must have AVX2; the left side must have its rows, at least as long as the strip is deep.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn multiply(left: Left<'_>, strip: &[Tile], sums: &mut Sums) {
    for (row, sums) in sums.0.iter_mut().enumerate().take(left.rows) {
        // SAFETY: the caller's promise.
        unsafe { one_row(left.integers.as_ptr().add(row * left.stride), strip, sums) };
    }
}

#[target_feature(enable = "avx2")]
unsafe fn one_row(row: *const i8, strip: &[Tile], out: &mut [i32; STRIP]) {
    let ones = _mm256_set1_epi16(1);
    let mut sums = [_mm256_setzero_si256(); 4];
    let mut at = row;
    for tiles in strip.chunks_exact(2) {
        let [upper, lower] = [tiles[0].0.as_ptr(), tiles[1].0.as_ptr()];
        for line in 0..16 {
            // SAFETY: 64 integers of the row belong to these tiles, four to each line.
            let four = unsafe { _mm256_set1_epi32(at.add(line * 4).cast::<i32>().read_unaligned()) };
            let magnitude = _mm256_abs_epi8(four);
            for (quarter, sum) in sums.iter_mut().enumerate() {
                let tile = if quarter < 2 { upper } else { lower };
                // SAFETY: a line has 64 bytes.
                let columns = unsafe { _mm256_loadu_si256(tile.add(line * 64 + quarter % 2 * 32).cast()) };
                let pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(columns, four));
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, ones));
            }
        }
        at = at.wrapping_add(64);
    }
    for (sum, out) in sums.iter().zip(out.chunks_exact_mut(8)) {
        // SAFETY: eight sums.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), *sum) };
    }
}
