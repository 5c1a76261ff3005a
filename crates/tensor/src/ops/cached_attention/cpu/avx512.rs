//! One query in AVX-512, for heads of whole vectors: the algorithm of `cpu`. (There the compiler reduces the
//! sixteen partial sums of every product one by one, which takes longer than the products.)

use std::arch::x86_64::*;

use half::bf16;

use super::{Buffers, Sizes, uniform};
use crate::Rounding;
use crate::cpu::avx512::{exp, load_bf16};
use crate::cpu::number::Numbers;
use crate::cpu::simd::LANES;

/// The cached elements, and the offsets of the rows that a query sees, in elements.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) values: Numbers<'a>,
    pub(super) starts: &'a [usize],
}

/// Fills `buffers.context` from `buffers.query`, which is scaled.
///
/// # Safety
/// AVX-512 must be available, `d_k` and `d_v` multiples of 16, and every start the offset of a whole cached
/// row.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn attend(stored: Stored<'_>, sizes: Sizes, buffers: &mut Buffers<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match stored.values {
            Numbers::F32(values) => {
                let values = values.as_ptr().cast();
                match sizes.rounding {
                    Rounding::Fused => run::<false, true>(values, stored.starts, sizes, buffers),
                    Rounding::Uniform => run::<false, false>(values, stored.starts, sizes, buffers),
                }
            }
            Numbers::Bf16(values) => {
                let values = values.as_ptr().cast();
                match sizes.rounding {
                    Rounding::Fused => run::<true, true>(values, stored.starts, sizes, buffers),
                    Rounding::Uniform => run::<true, false>(values, stored.starts, sizes, buffers),
                }
            }
        }
    }
}

/// # Safety
/// As for [`attend`]; `values` are bf16 if `NARROW`, else f32.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn run<const NARROW: bool, const FUSED: bool>(
    values: *const u8,
    starts: &[usize],
    sizes: Sizes,
    buffers: &mut Buffers<'_>,
) {
    let Sizes { heads, d_k, d_v, .. } = sizes;
    assert!(buffers.query.len() >= heads * d_k && buffers.context.len() >= heads * d_v, "a query");
    assert!(buffers.stride >= starts.len().next_multiple_of(LANES), "a row of weights");
    assert!(buffers.weights.len() >= heads * buffers.stride, "weights");
    // SAFETY: the caller's promise, and the lengths that were just checked.
    unsafe {
        for first in (0..starts.len()).step_by(LANES) {
            score::<NARROW, FUSED>(values, starts, first, sizes, buffers);
        }
        for row in 0..heads {
            let weights =
                &mut buffers.weights[row * buffers.stride..][..starts.len().next_multiple_of(LANES)];
            if FUSED { softmax(weights) } else { uniform::softmax(weights) }
        }
        let vectors = heads * d_v / LANES;
        let mut vector = 0;
        while vector < vectors {
            match vectors - vector {
                8.. => {
                    weighted_sum::<NARROW, FUSED, 8>(values, starts, vector, sizes, buffers);
                    vector += 8;
                }
                4.. => {
                    weighted_sum::<NARROW, FUSED, 4>(values, starts, vector, sizes, buffers);
                    vector += 4;
                }
                _ => {
                    weighted_sum::<NARROW, FUSED, 1>(values, starts, vector, sizes, buffers);
                    vector += 1;
                }
            }
        }
    }
}

/// `S = q Kᵀ` for sixteen positions from `first` on and all heads; −∞ past the last.
///
/// # Safety
/// As for [`run`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn score<const NARROW: bool, const FUSED: bool>(
    values: *const u8,
    starts: &[usize],
    first: usize,
    Sizes { heads, d_k, .. }: Sizes,
    buffers: &mut Buffers<'_>,
) {
    /// Keys that are processed together.
    const KEYS: usize = 4;
    let present = (starts.len() - first).min(LANES);
    let seen = ((1_u32 << present) - 1) as __mmask16;
    for head in 0..heads {
        let mut all = [_mm512_setzero_ps(); LANES];
        for group in (0..present).step_by(KEYS) {
            let keys: [usize; KEYS] = std::array::from_fn(|i| starts[first + (group + i).min(present - 1)]);
            let mut sums = [_mm512_setzero_ps(); KEYS];
            for column in (head * d_k..(head + 1) * d_k).step_by(LANES) {
                // SAFETY: the columns of a head are within the query, and within every key.
                let query = unsafe { _mm512_loadu_ps(buffers.query.as_ptr().add(column)) };
                for (sum, key) in sums.iter_mut().zip(keys) {
                    // SAFETY: as above.
                    *sum = add_product::<FUSED>(query, unsafe { load::<NARROW>(values, key + column) }, *sum);
                }
            }
            all[group..group + KEYS].copy_from_slice(&sums);
        }
        // Clamped to finite values: ∞ − ∞ would be NaN. (If an operand is NaN, min and max return the
        // second.)
        let scores = _mm512_min_ps(_mm512_set1_ps(f32::MAX), add_up(all));
        let scores = _mm512_max_ps(_mm512_set1_ps(f32::MIN), scores);
        let scores = _mm512_mask_mov_ps(_mm512_set1_ps(f32::NEG_INFINITY), seen, scores);
        // SAFETY: the row of weights is padded to whole vectors.
        unsafe { _mm512_storeu_ps(buffers.weights.as_mut_ptr().add(head * buffers.stride + first), scores) };
    }
}

/// `a b + sum`, rounded once or twice.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_product<const FUSED: bool>(a: __m512, b: __m512, sum: __m512) -> __m512 {
    if FUSED { _mm512_fmadd_ps(a, b, sum) } else { _mm512_add_ps(sum, _mm512_mul_ps(a, b)) }
}

/// The horizontal sums of sixteen vectors, one in each lane: halves of two vectors are combined into one
/// until one is left.
#[inline]
#[target_feature(enable = "avx512f")]
fn add_up(v: [__m512; LANES]) -> __m512 {
    let mut halves = [_mm512_setzero_ps(); 8];
    for (i, half) in halves.iter_mut().enumerate() {
        // Lanes: eight of vector i, then eight of vector i + 8.
        let (a, b) = (v[i], v[i + 8]);
        *half = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xEE>(a, b));
    }
    let mut quarters = [_mm512_setzero_ps(); 4];
    for (i, quarter) in quarters.iter_mut().enumerate() {
        // Four of each of i, i + 8, i + 4, i + 12.
        let (a, b) = (halves[i], halves[i + 4]);
        *quarter = _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xDD>(a, b));
    }
    let mut pairs = [_mm512_setzero_ps(); 2];
    for (i, pair) in pairs.iter_mut().enumerate() {
        let (a, b) = (quarters[i], quarters[i + 2]);
        *pair = _mm512_add_ps(_mm512_shuffle_ps::<0x44>(a, b), _mm512_shuffle_ps::<0xEE>(a, b));
    }
    let [a, b] = pairs;
    let sums = _mm512_add_ps(_mm512_shuffle_ps::<0x88>(a, b), _mm512_shuffle_ps::<0xDD>(a, b));
    // Lane 4 q + j holds vector [0, 8, 4, 12][q] + [0, 2, 1, 3][j]: back into order.
    let order = _mm512_setr_epi32(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15);
    _mm512_permutexvar_ps(order, sums)
}

/// `P = softmax(S)` for one head; −∞ becomes exactly 0.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn softmax(weights: &mut [f32]) {
    let (vectors, _) = weights.as_chunks_mut::<LANES>();
    let mut tops = _mm512_set1_ps(f32::NEG_INFINITY);
    for vector in &*vectors {
        // SAFETY: sixteen elements, here and below.
        tops = _mm512_max_ps(unsafe { _mm512_loadu_ps(vector.as_ptr()) }, tops);
    }
    let top = _mm512_set1_ps(_mm512_reduce_max_ps(tops));
    let mut sums = _mm512_setzero_ps();
    for vector in &mut *vectors {
        // SAFETY: as above.
        unsafe {
            let exponential = exp_or_zero(_mm512_sub_ps(_mm512_loadu_ps(vector.as_ptr()), top));
            sums = _mm512_add_ps(sums, exponential);
            _mm512_storeu_ps(vector.as_mut_ptr(), exponential);
        }
    }
    let share = _mm512_set1_ps(1.0 / _mm512_reduce_add_ps(sums));
    for vector in vectors {
        // SAFETY: as above.
        unsafe {
            let weight = _mm512_mul_ps(_mm512_loadu_ps(vector.as_ptr()), share);
            _mm512_storeu_ps(vector.as_mut_ptr(), weight);
        }
    }
}

/// `e^x`, and 0 below e^-87: smaller results are denormal and slow on the CPU, and all lanes past the last
/// position would have them.
#[inline]
#[target_feature(enable = "avx512f")]
fn exp_or_zero(x: __m512) -> __m512 {
    let least = _mm512_set1_ps(-87.0);
    // Not less, or NaN.
    let in_range = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, least);
    _mm512_maskz_mov_ps(in_range, exp(_mm512_max_ps(least, x)))
}

/// `o = P V` for `VECTORS` vectors of columns from vector `first` on.
///
/// # Safety
/// As for [`run`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn weighted_sum<const NARROW: bool, const FUSED: bool, const VECTORS: usize>(
    values: *const u8,
    starts: &[usize],
    first: usize,
    Sizes { heads, d_k, d_v, .. }: Sizes,
    buffers: &mut Buffers<'_>,
) {
    let mut weights = [buffers.weights.as_ptr(); VECTORS];
    for (i, weights) in weights.iter_mut().enumerate() {
        *weights = weights.wrapping_add((first + i) * LANES / d_v * buffers.stride);
    }
    let mut sums = [_mm512_setzero_ps(); VECTORS];
    for (position, start) in starts.iter().enumerate() {
        let value = start + heads * d_k + first * LANES;
        for (i, sum) in sums.iter_mut().enumerate() {
            // SAFETY: the columns are within every value, and there is a weight for every position.
            let (weight, value) =
                unsafe { (*weights[i].add(position), load::<NARROW>(values, value + i * LANES)) };
            *sum = add_product::<FUSED>(_mm512_set1_ps(weight), value, *sum);
        }
    }
    for (i, sum) in sums.into_iter().enumerate() {
        // SAFETY: the columns are within the context.
        unsafe { _mm512_storeu_ps(buffers.context.as_mut_ptr().add((first + i) * LANES), sum) };
    }
}

/// Sixteen elements from element `at` on.
///
/// # Safety
/// They must be readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn load<const NARROW: bool>(values: *const u8, at: usize) -> __m512 {
    // SAFETY: the caller's promise.
    unsafe {
        if NARROW {
            load_bf16(values.cast::<bf16>().add(at))
        } else {
            _mm512_loadu_ps(values.cast::<f32>().add(at))
        }
    }
}
