//! Scores and weighted sums of one query in AVX2, for heads of whole vectors: the order of additions of the plain
//! Rust, so the same bits. (There the compiler reduces the partial sums of every product one by one.)

use std::arch::x86_64::*;

use half::bf16;

use super::{Buffers, Sizes};
use crate::cpu::number::Numbers;
use crate::cpu::simd::LANES;

/// Elements of a vector, and keys that are processed together.
const WIDE: usize = 8;

/// `S = q Kᵀ` with a scaled query; some elements after the last position are overwritten.
///
/// # Safety
/// AVX2 must be available, `d_k` a multiple of 16, and every start the offset of a whole cached row.
pub(super) unsafe fn score(values: Numbers<'_>, starts: &[usize], sizes: Sizes, buffers: &mut Buffers<'_>) {
    let Sizes { heads, d_k, .. } = sizes;
    assert!(buffers.query.len() >= heads * d_k, "a query");
    assert!(buffers.stride >= starts.len().next_multiple_of(WIDE), "a row of weights");
    assert!(buffers.weights.len() >= heads * buffers.stride, "weights");
    // SAFETY: the caller's promise, and the lengths that were just checked.
    unsafe {
        match values {
            Numbers::F32(values) => scores::<false>(values.as_ptr().cast(), starts, sizes, buffers),
            Numbers::Bf16(values) => scores::<true>(values.as_ptr().cast(), starts, sizes, buffers),
        }
    }
}

/// `o = P V`.
///
/// # Safety
/// As for [`score`], with `d_v` a multiple of 16.
pub(super) unsafe fn weighted_sum(
    values: Numbers<'_>,
    starts: &[usize],
    sizes: Sizes,
    buffers: &mut Buffers<'_>,
) {
    let Sizes { heads, d_v, .. } = sizes;
    assert!(buffers.context.len() >= heads * d_v, "a context");
    assert!(buffers.stride >= starts.len() && buffers.weights.len() >= heads * buffers.stride, "weights");
    // SAFETY: the caller's promise, and the lengths that were just checked.
    unsafe {
        match values {
            Numbers::F32(values) => sums::<false>(values.as_ptr().cast(), starts, sizes, buffers),
            Numbers::Bf16(values) => sums::<true>(values.as_ptr().cast(), starts, sizes, buffers),
        }
    }
}

/// # Safety
/// As for [`score`]; `values` are bf16 if `NARROW`, else f32.
#[target_feature(enable = "avx2")]
unsafe fn scores<const NARROW: bool>(
    values: *const u8,
    starts: &[usize],
    Sizes { heads, d_k, .. }: Sizes,
    buffers: &mut Buffers<'_>,
) {
    for (group, starts) in starts.chunks(WIDE).enumerate() {
        let keys: [usize; WIDE] = std::array::from_fn(|i| starts[i.min(starts.len() - 1)]);
        for head in 0..heads {
            let mut all = [_mm256_setzero_ps(); WIDE];
            // Four keys at once: their partial sums fit the registers.
            for half in [0, 4] {
                let mut sums = [[_mm256_setzero_ps(); 2]; 4];
                for column in (head * d_k..(head + 1) * d_k).step_by(LANES) {
                    for side in 0..2 {
                        let column = column + side * WIDE;
                        // SAFETY: the columns of a head are within the query, and within every key.
                        let query = unsafe { _mm256_loadu_ps(buffers.query.as_ptr().add(column)) };
                        for (sums, key) in sums.iter_mut().zip(&keys[half..]) {
                            // SAFETY: as above.
                            let key = unsafe { load::<NARROW>(values, key + column) };
                            sums[side] = _mm256_add_ps(sums[side], _mm256_mul_ps(query, key));
                        }
                    }
                }
                for (all, [low, high]) in all[half..].iter_mut().zip(sums) {
                    *all = _mm256_add_ps(low, high);
                }
            }
            // Clamped to finite values: ∞ − ∞ would be NaN. (If an operand is NaN, min and max return the second.)
            let scores = _mm256_min_ps(_mm256_set1_ps(f32::MAX), add_up(all));
            let scores = _mm256_max_ps(_mm256_set1_ps(f32::MIN), scores);
            let place = head * buffers.stride + group * WIDE;
            // SAFETY: the row of weights is padded to whole vectors.
            unsafe { _mm256_storeu_ps(buffers.weights.as_mut_ptr().add(place), scores) };
        }
    }
}

/// The horizontal sums of eight vectors, one in each lane, in the order of `fold`.
#[inline]
#[target_feature(enable = "avx2")]
fn add_up(v: [__m256; WIDE]) -> __m256 {
    let mut halves = [_mm256_setzero_ps(); 4];
    for (i, half) in halves.iter_mut().enumerate() {
        // Lanes: four of vector i, then four of vector i + 4.
        let (a, b) = (v[i], v[i + 4]);
        *half = _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
    }
    let mut pairs = [_mm256_setzero_ps(); 2];
    for (i, pair) in pairs.iter_mut().enumerate() {
        // Two of each of 2 i, 2 i + 1, 2 i + 4, 2 i + 5.
        let (a, b) = (halves[2 * i], halves[2 * i + 1]);
        *pair = _mm256_add_ps(_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xEE>(a, b));
    }
    let [a, b] = pairs;
    _mm256_add_ps(_mm256_shuffle_ps::<0x88>(a, b), _mm256_shuffle_ps::<0xDD>(a, b))
}

/// # Safety
/// As for [`weighted_sum`]; `values` are bf16 if `NARROW`, else f32.
#[target_feature(enable = "avx2")]
unsafe fn sums<const NARROW: bool>(
    values: *const u8,
    starts: &[usize],
    sizes: Sizes,
    buffers: &mut Buffers<'_>,
) {
    for head in 0..sizes.heads {
        let mut column = 0;
        while column < sizes.d_v {
            // SAFETY: the caller's promise; `column` and the vectors from there are within the head.
            column += unsafe {
                match (sizes.d_v - column) / WIDE {
                    8.. => columns::<NARROW, 8>(values, starts, head, column, sizes, buffers),
                    4.. => columns::<NARROW, 4>(values, starts, head, column, sizes, buffers),
                    _ => columns::<NARROW, 2>(values, starts, head, column, sizes, buffers),
                }
            };
        }
    }
}

/// `VECTORS` vectors of a head's context from `column` on; returns their number of columns.
///
/// # Safety
/// As for [`sums`].
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn columns<const NARROW: bool, const VECTORS: usize>(
    values: *const u8,
    starts: &[usize],
    head: usize,
    column: usize,
    Sizes { heads, d_k, d_v, .. }: Sizes,
    buffers: &mut Buffers<'_>,
) -> usize {
    let mut sums = [_mm256_setzero_ps(); VECTORS];
    let weights = &buffers.weights[head * buffers.stride..][..starts.len()];
    for (start, &weight) in starts.iter().zip(weights) {
        let (value, weight) = (start + heads * d_k + head * d_v + column, _mm256_set1_ps(weight));
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the columns are within every value.
            let value = unsafe { load::<NARROW>(values, value + i * WIDE) };
            *sum = _mm256_add_ps(*sum, _mm256_mul_ps(weight, value));
        }
    }
    for (i, sum) in sums.into_iter().enumerate() {
        // SAFETY: the columns are within the context.
        unsafe { _mm256_storeu_ps(buffers.context.as_mut_ptr().add(head * d_v + column + i * WIDE), sum) };
    }
    VECTORS * WIDE
}

/// Eight elements from element `at` on.
///
/// # Safety
/// They must be readable.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load<const NARROW: bool>(values: *const u8, at: usize) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe {
        if NARROW {
            let halves = _mm_loadu_si128(values.cast::<bf16>().add(at).cast());
            _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(halves)))
        } else {
            _mm256_loadu_ps(values.cast::<f32>().add(at))
        }
    }
}
