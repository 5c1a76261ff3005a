//! 256-bit kernels. Their instructions multiply unsigned by signed bytes, so the rows are offset by 128:
//!
//! ```text
//! Σ_k q w = Σ_k (q + 128) w − 128 Σ_k w
//! ```
//!
//! AVX-VNNI adds four such products in 32 bits. AVX2 adds two of them in 16 bits with saturation, so its
//! kernel needs a [matrix with small pairs](super).

use std::arch::x86_64::*;

use super::kernel::{Left, Sums, prefetch_next_strip};
use super::product::Block;
use super::rows::{MAGNITUDE, largest_magnitude, round};
use super::{DEPTH, ROUND, STRIP, Tile, scale_of};
use crate::cpu::gemm::Rectifier;

/// Vectors of a strip's sums.
const QUARTERS: usize = STRIP / 8;

/// 64 integers of a row, offset.
#[repr(C, align(64))]
struct Step([i32; DEPTH / 4]);

/// # Safety
/// The CPU must have AVX2; the left side must have its rows, at least as long as the strip is deep. Pairs of
/// the strip must be small, or the sums are wrong.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn multiply(left: Left<'_>, strip: &[Tile], column_sums: &[i32; STRIP], sums: &mut Sums) {
    let ones = _mm256_set1_epi16(1);
    let add = |sum, four, columns| {
        _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(four, columns), ones))
    };
    let mut row = 0;
    while row < left.rows {
        let (rest, out) = (left.rows_from(row), &mut sums.0[row..]);
        // SAFETY: the caller's promise.
        row += unsafe {
            match rest.rows {
                1 => rows::<1, 2>(rest, strip, column_sums, out, add),
                _ => rows::<2, 1>(rest, strip, column_sums, out, add),
            }
        };
    }
}

/// # Safety
/// The CPU must have AVX2 and AVX-VNNI; the left side must have its rows, at least as long as the strip is
/// deep.
#[target_feature(enable = "avx2,avxvnni")]
pub(super) unsafe fn multiply_vnni(
    left: Left<'_>,
    strip: &[Tile],
    column_sums: &[i32; STRIP],
    sums: &mut Sums,
) {
    let add = |sum, four, columns| _mm256_dpbusd_avx_epi32(sum, four, columns);
    let mut row = 0;
    while row < left.rows {
        let (rest, out) = (left.rows_from(row), &mut sums.0[row..]);
        // SAFETY: the caller's promise.
        row += unsafe {
            match rest.rows {
                1 => rows::<1, 2>(rest, strip, column_sums, out, add),
                2 | 4 => rows::<2, 1>(rest, strip, column_sums, out, add),
                _ => rows::<3, 1>(rest, strip, column_sums, out, add),
            }
        };
    }
}

/// Scales a block of sums, applies the epilogue and writes it: row `r` at `to + r · stride`. For the plain Rust
/// version in `product` the compiler takes vectors apart and joins them again.
///
/// # Safety
/// The CPU must have AVX2, the rows must be writable and exclusive to the caller, and the bias as long as a
/// strip.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn store(
    block: &Block<'_>,
    bias: Option<&[f32]>,
    rectifier: Rectifier,
    to: *mut f32,
    stride: usize,
) {
    let zero = _mm256_setzero_ps();
    for (row, (&own, sums)) in block.rows.iter().zip(&block.sums.0).enumerate() {
        let own = _mm256_set1_ps(own);
        for quarter in (0..STRIP).step_by(8) {
            // SAFETY: eight sums, scales and biases of a strip, and the caller's promise.
            unsafe {
                let sums = _mm256_cvtepi32_ps(_mm256_loadu_si256(sums.as_ptr().add(quarter).cast()));
                let columns = _mm256_loadu_ps(block.columns.as_ptr().add(quarter));
                let mut numbers = _mm256_mul_ps(sums, _mm256_mul_ps(own, columns));
                if let Some(bias) = bias {
                    numbers = _mm256_add_ps(numbers, _mm256_loadu_ps(bias.as_ptr().add(quarter)));
                }
                if rectifier == Rectifier::Relu {
                    // With a NaN, max returns the second operand.
                    numbers = _mm256_max_ps(numbers, zero);
                }
                _mm256_storeu_ps(to.add(row * stride + quarter), numbers);
            }
        }
    }
}

/// Quantizes a row; returns its scale, and the sum of its integers.
///
/// # Safety
/// The CPU must have AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn quantize_row(values: &[f32], out: &mut [i8]) -> (f32, i32) {
    let (values, values_rest) = values.as_chunks::<32>();
    let (out, out_rest) = out.as_chunks_mut::<32>();
    let mut largest = [_mm256_setzero_si256(); 4];
    for values in values {
        for (largest, values) in largest.iter_mut().zip(values.as_chunks::<8>().0) {
            // SAFETY: eight values.
            let bits = unsafe { _mm256_loadu_si256(values.as_ptr().cast()) };
            let bits = _mm256_and_si256(bits, _mm256_set1_epi32(MAGNITUDE as i32));
            *largest = _mm256_max_epu32(*largest, bits);
        }
    }
    let [a, b, c, d] = largest;
    let eight = _mm256_max_epu32(_mm256_max_epu32(a, b), _mm256_max_epu32(c, d));
    let four = _mm_max_epu32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
    let two = _mm_max_epu32(four, _mm_unpackhi_epi64(four, four));
    let one = _mm_max_epu32(two, _mm_shuffle_epi32::<1>(two));
    let largest = (_mm_cvtsi128_si32(one) as u32).max(largest_magnitude(values_rest));
    let (scale, inverse) = scale_of(f32::from_bits(largest));

    // Eight integers, each in the low byte of its lane.
    let integers = |values: &[f32; 8]| {
        // SAFETY: eight values.
        let values = _mm256_mul_ps(unsafe { _mm256_loadu_ps(values.as_ptr()) }, _mm256_set1_ps(inverse));
        let bits = _mm256_castps_si256(_mm256_add_ps(values, _mm256_set1_ps(ROUND)));
        _mm256_and_si256(bits, _mm256_set1_epi32(0xff))
    };
    let mut sums = _mm256_setzero_si256();
    for (values, out) in values.iter().zip(out) {
        let values = values.as_chunks::<8>().0;
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| integers(&values[i]));
        let bytes = _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
        // Each half of the vector was packed by itself: fours of a, b, c, d, then their other fours.
        let bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
        // SAFETY: 32 integers.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), bytes) };
    }
    let four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
    let two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
    let sum = _mm_cvtsi128_si32(two) + _mm_extract_epi32::<1>(two);
    (scale, sum + round(values_rest, inverse, out_rest))
}

/// Some rows; each has `CHAINS` accumulators per column, so that no addition waits for the previous one.
/// `add(sum, four, columns)` adds the products of four unsigned bytes with four of each of eight columns.
///
/// # Safety
/// The features of the caller must include AVX2; `ROWS` rows of the strip's depth must be readable.
#[inline(always)]
unsafe fn rows<const ROWS: usize, const CHAINS: usize>(
    left: Left<'_>,
    strip: &[Tile],
    column_sums: &[i32; STRIP],
    out: &mut [[i32; STRIP]],
    add: impl Fn(__m256i, __m256i, __m256i) -> __m256i,
) -> usize {
    // SAFETY: the caller's promises; 64 integers of each row belong to two tiles, which have 16 lines of 64
    // bytes each, and there are eight sums to a quarter.
    unsafe {
        let offset = _mm256_set1_epi8(-128);
        let mut sums = [[[_mm256_setzero_si256(); QUARTERS]; ROWS]; CHAINS];
        let mut at = left.integers.as_ptr();
        for tiles in strip.chunks_exact(2) {
            let mut steps = [const { Step([0; DEPTH / 4]) }; ROWS];
            // A single row would wait for its stores.
            if ROWS > 1 {
                for (row, Step(step)) in steps.iter_mut().enumerate() {
                    for half in 0..2 {
                        let integers = _mm256_loadu_si256(at.add(row * left.stride + half * 32).cast());
                        let to = step.as_mut_ptr().add(half * 8);
                        _mm256_store_si256(to.cast(), _mm256_xor_si256(integers, offset));
                    }
                }
            }
            // Unrolled once; the compiler does not do it.
            for lines in (0..16).step_by(2) {
                if left.is_first {
                    prefetch_next_strip(strip, tiles, lines..lines + 2);
                }
                for half in 0..2 {
                    let (line, sums) = (lines + half, &mut sums[half % CHAINS]);
                    let own: [_; ROWS] = std::array::from_fn(|row| {
                        if ROWS > 1 {
                            _mm256_set1_epi32(steps[row].0[line])
                        } else {
                            let four = at.add(line * 4).cast::<i32>().read_unaligned();
                            _mm256_xor_si256(_mm256_set1_epi32(four), offset)
                        }
                    });
                    // Columns outside, rows inside: the other order spills registers.
                    for quarter in 0..QUARTERS {
                        let columns = tiles[quarter / 2].0.as_ptr().add(line * 64 + quarter % 2 * 32);
                        let columns = _mm256_load_si256(columns.cast());
                        for (sums, four) in sums.iter_mut().zip(own) {
                            sums[quarter] = add(sums[quarter], four, columns);
                        }
                    }
                }
            }
            at = at.wrapping_add(DEPTH);
        }
        for (row, out) in out.iter_mut().enumerate().take(ROWS) {
            for quarter in 0..QUARTERS {
                let mut sum = sums[0][row][quarter];
                for chain in &sums[1..] {
                    sum = _mm256_add_epi32(sum, chain[row][quarter]);
                }
                let column_sums = _mm256_loadu_si256(column_sums.as_ptr().add(quarter * 8).cast());
                sum = _mm256_sub_epi32(sum, _mm256_slli_epi32::<7>(column_sums));
                _mm256_storeu_si256(out.as_mut_ptr().add(quarter * 8).cast(), sum);
            }
        }
    }
    ROWS
}
