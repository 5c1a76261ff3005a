//! AVX-512 without VNNI, for rows that were [split](super::split).

use std::arch::x86_64::*;

use super::kernel::{Left, Sums};
use super::split::{Split, total};
use super::{STRIP, Tile};

/// # Safety
/// The machine must have AVX-512; the left side must have its rows, at least as long as the strip is deep.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) unsafe fn multiply(left: Left<'_>, strip: &[Tile], sums: &mut Sums) {
    let mut row = 0;
    while row < left.rows {
        let start = left.integers.as_ptr().wrapping_add(row * left.stride);
        // SAFETY: the caller's promise.
        row += unsafe {
            match left.rows - row {
                1 => rows::<1>(start, left.stride, strip, &mut sums.0[row..]),
                2 | 3 => rows::<2>(start, left.stride, strip, &mut sums.0[row..]),
                _ => rows::<4>(start, left.stride, strip, &mut sums.0[row..]),
            }
        };
    }
}

#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn rows<const ROWS: usize>(
    start: *const i8,
    stride: usize,
    strip: &[Tile],
    out: &mut [[i32; STRIP]],
) -> usize {
    let ones = _mm512_set1_epi16(1);
    let mut sums = [[_mm512_setzero_si512(); 2]; ROWS];
    let mut lacks = [_mm256_setzero_si256(); ROWS];
    for (step, tiles) in strip.chunks_exact(2).enumerate() {
        let mut split = [Split::EMPTY; ROWS];
        for row in 0..ROWS {
            // SAFETY: 64 integers of each row belong to these tiles.
            let lack = unsafe { split[row].fill(start.add(row * stride + step * 64)) };
            lacks[row] = _mm256_add_epi64(lacks[row], lack);
        }
        for line in 0..16 {
            let own: [_; ROWS] =
                std::array::from_fn(|row| split[row].four(line).map(|four| _mm512_set1_epi32(four)));
            for side in 0..2 {
                // SAFETY: a tile has 16 lines of 64 bytes.
                let columns = unsafe { _mm512_load_si512(tiles[side].0.as_ptr().add(line * 64).cast()) };
                for (sums, [magnitudes, signs]) in sums.iter_mut().zip(own) {
                    let pairs = _mm512_maddubs_epi16(magnitudes, _mm512_xor_si512(columns, signs));
                    sums[side] = _mm512_add_epi32(sums[side], _mm512_madd_epi16(pairs, ones));
                }
            }
        }
    }
    for ((sums, lack), out) in sums.iter().zip(lacks).zip(out) {
        let lack = _mm512_set1_epi32(total(lack));
        for (&sum, out) in sums.iter().zip(out.as_chunks_mut::<16>().0) {
            // SAFETY: sixteen sums.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), _mm512_add_epi32(sum, lack)) };
        }
    }
    ROWS
}
