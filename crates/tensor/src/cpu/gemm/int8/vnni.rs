//! AVX-512 VNNI: four byte products and their sum in one instruction, with one side unsigned. That side is
//! therefore offset by 128, and 128 times the sum of the other side is subtracted at the end: for one or two
//! rows the rows are offset, for more the columns, which all rows then share.

use std::arch::x86_64::*;

use super::kernel::{Left, Sums, prefetch_next_strip};
use super::{STRIP, Tile};

/// Up to this many rows VNNI is faster than AMX.
pub(super) const MAX_ROWS: usize = 2;

pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512vnni")
}

/// # Safety
/// The CPU must have AVX-512 VNNI; the left side must have its rows, at least as long as the strip is deep.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) unsafe fn multiply(left: Left<'_>, strip: &[Tile], column_sums: &[i32; STRIP], sums: &mut Sums) {
    let mut row = 0;
    while row < left.rows {
        let (rest, out) = (left.rows_from(row), &mut sums.0[row..]);
        // SAFETY: the caller's promise.
        row += unsafe {
            match rest.rows {
                1 => one_or_two_rows::<1, 4>(rest, strip, column_sums, out),
                2 => one_or_two_rows::<2, 2>(rest, strip, column_sums, out),
                3 => several_rows::<3>(rest, strip, out),
                4 | 5 => several_rows::<4>(rest, strip, out),
                6 | 7 => several_rows::<6>(rest, strip, out),
                8..12 => several_rows::<8>(rest, strip, out),
                _ => several_rows::<12>(rest, strip, out),
            }
        };
    }
}

/// The first `ROWS` rows.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn several_rows<const ROWS: usize>(left: Left<'_>, strip: &[Tile], out: &mut [[i32; STRIP]]) -> usize {
    let offset = _mm512_set1_epi8(-128);
    let mut sums = [[_mm512_setzero_si512(); 2]; ROWS];
    let mut at = left.integers.as_ptr();
    for tiles in strip.chunks_exact(2) {
        for line in 0..16 {
            if left.is_first {
                prefetch_next_strip(strip, tiles, line..line + 1);
            }
            // SAFETY: a tile has 16 lines of 64 bytes.
            let columns = [0, 1].map(|side| unsafe {
                let columns = _mm512_load_si512(tiles[side].0.as_ptr().add(line * 64).cast());
                _mm512_xor_si512(columns, offset)
            });
            for (row, sums) in sums.iter_mut().enumerate() {
                // SAFETY: 64 integers of each row belong to these tiles, four to each line.
                let four = unsafe { at.add(row * left.stride + line * 4).cast::<i32>().read_unaligned() };
                let four = _mm512_set1_epi32(four);
                for (sum, columns) in sums.iter_mut().zip(columns) {
                    *sum = _mm512_dpbusd_epi32(*sum, columns, four);
                }
            }
        }
        at = at.wrapping_add(64);
    }
    // Arrays of known lengths: if sums were indexed by a variable, the loop above would store each in memory.
    let row_sums: &[i32; ROWS] = left.sums.first_chunk().expect("a sum for each row");
    let out: &mut [_; ROWS] = out.first_chunk_mut().expect("a row of sums for each row");
    for ((sums, row_sum), out) in sums.into_iter().zip(row_sums).zip(out) {
        let correction = _mm512_set1_epi32(row_sum << 7);
        for (side, sum) in sums.into_iter().enumerate() {
            let sum = _mm512_sub_epi32(sum, correction);
            // SAFETY: a strip's sums are two vectors.
            unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(side * 16).cast(), sum) };
        }
    }
    ROWS
}

/// One row or two; each has `CHAINS` accumulators per column, so that no addition waits for the previous one.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
unsafe fn one_or_two_rows<const ROWS: usize, const CHAINS: usize>(
    left: Left<'_>,
    strip: &[Tile],
    column_sums: &[i32; STRIP],
    out: &mut [[i32; STRIP]],
) -> usize {
    let offset = _mm512_set1_epi8(-128);
    let mut sums = [[[_mm512_setzero_si512(); 2]; CHAINS]; ROWS];
    let mut at = left.integers.as_ptr();
    for tiles in strip.chunks_exact(2) {
        for group in (0..16).step_by(CHAINS) {
            if left.is_first {
                prefetch_next_strip(strip, tiles, group..group + CHAINS);
            }
            for chain in 0..CHAINS {
                let line = group + chain;
                // SAFETY: a tile has 16 lines of 64 bytes.
                let columns = [0, 1]
                    .map(|side| unsafe { _mm512_load_si512(tiles[side].0.as_ptr().add(line * 64).cast()) });
                for (row, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: 64 integers of each row belong to these tiles, four to each line.
                    let four = unsafe { at.add(row * left.stride + line * 4).cast::<i32>().read_unaligned() };
                    let four = _mm512_xor_si512(_mm512_set1_epi32(four), offset);
                    for side in 0..2 {
                        sums[chain][side] = _mm512_dpbusd_epi32(sums[chain][side], four, columns[side]);
                    }
                }
            }
        }
        at = at.wrapping_add(64);
    }
    for (sums, out) in sums.iter().zip(out) {
        for side in 0..2 {
            let mut sum = sums[0][side];
            for chain in &sums[1..] {
                sum = _mm512_add_epi32(sum, chain[side]);
            }
            // SAFETY: sixteen sums each.
            unsafe {
                let column_sums = _mm512_loadu_si512(column_sums.as_ptr().add(side * 16).cast());
                let sum = _mm512_sub_epi32(sum, _mm512_slli_epi32::<7>(column_sums));
                _mm512_storeu_si512(out.as_mut_ptr().add(side * 16).cast(), sum);
            }
        }
    }
    ROWS
}
