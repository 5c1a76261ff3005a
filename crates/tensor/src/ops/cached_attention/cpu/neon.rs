//! Scores and weighted sums of one query in NEON, for heads of whole vectors: the order of additions of the plain
//! Rust, so the same bits. (There the compiler reduces the partial sums of every product one by one.)

use std::arch::aarch64::*;

use half::bf16;

use super::{Buffers, Sizes};
use crate::cpu::number::Numbers;
use crate::cpu::simd::LANES;

/// Elements of a vector, and keys that are processed together.
const WIDE: usize = 4;
/// Vectors of sixteen partial sums.
const PARTS: usize = LANES / WIDE;

/// `S = q Kᵀ` with a scaled query; some elements after the last position are overwritten.
///
/// # Safety
/// `d_k` must be a multiple of 16, and every start the offset of a whole cached row.
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
unsafe fn scores<const NARROW: bool>(
    values: *const u8,
    starts: &[usize],
    Sizes { heads, d_k, .. }: Sizes,
    buffers: &mut Buffers<'_>,
) {
    for (group, starts) in starts.chunks(WIDE).enumerate() {
        let keys: [usize; WIDE] = std::array::from_fn(|i| starts[i.min(starts.len() - 1)]);
        for head in 0..heads {
            // SAFETY: the columns of a head are within the query, and within every key; the row of weights is
            // padded to whole vectors.
            unsafe {
                let mut sums = [[vdupq_n_f32(0.0); PARTS]; WIDE];
                for column in (head * d_k..(head + 1) * d_k).step_by(LANES) {
                    for part in 0..PARTS {
                        let column = column + part * WIDE;
                        let query = vld1q_f32(buffers.query.as_ptr().add(column));
                        for (sums, key) in sums.iter_mut().zip(keys) {
                            let key = load::<NARROW>(values, key + column);
                            sums[part] = vaddq_f32(sums[part], vmulq_f32(query, key));
                        }
                    }
                }
                // Clamped to finite values: ∞ − ∞ would be NaN.
                let scores = vminq_f32(vdupq_n_f32(f32::MAX), add_up(sums));
                let scores = vmaxq_f32(vdupq_n_f32(f32::MIN), scores);
                let place = head * buffers.stride + group * WIDE;
                vst1q_f32(buffers.weights.as_mut_ptr().add(place), scores);
            }
        }
    }
}

/// The horizontal sums of four times sixteen lanes, one in each lane, in the order of `fold`.
#[inline]
fn add_up(sums: [[float32x4_t; PARTS]; WIDE]) -> float32x4_t {
    // SAFETY: every CPU of this architecture has NEON.
    unsafe {
        let quarters = sums.map(|[a, b, c, d]| vaddq_f32(vaddq_f32(a, c), vaddq_f32(b, d)));
        let [first, second] = [0, 2].map(|i| {
            let (a, b) = (vreinterpretq_f64_f32(quarters[i]), vreinterpretq_f64_f32(quarters[i + 1]));
            // Lanes 0 and 1 of both, and lanes 2 and 3 of both.
            let (low, high) = (vzip1q_f64(a, b), vzip2q_f64(a, b));
            vaddq_f32(vreinterpretq_f32_f64(low), vreinterpretq_f32_f64(high))
        });
        vpaddq_f32(first, second)
    }
}

/// # Safety
/// As for [`weighted_sum`]; `values` are bf16 if `NARROW`, else f32.
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
                    16.. => columns::<NARROW, 16>(values, starts, head, column, sizes, buffers),
                    8.. => columns::<NARROW, 8>(values, starts, head, column, sizes, buffers),
                    _ => columns::<NARROW, 4>(values, starts, head, column, sizes, buffers),
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
unsafe fn columns<const NARROW: bool, const VECTORS: usize>(
    values: *const u8,
    starts: &[usize],
    head: usize,
    column: usize,
    Sizes { heads, d_k, d_v, .. }: Sizes,
    buffers: &mut Buffers<'_>,
) -> usize {
    let weights = &buffers.weights[head * buffers.stride..][..starts.len()];
    // SAFETY: the columns are within every value, and within the context.
    unsafe {
        let mut sums = [vdupq_n_f32(0.0); VECTORS];
        for (start, &weight) in starts.iter().zip(weights) {
            let value = start + heads * d_k + head * d_v + column;
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum = vaddq_f32(*sum, vmulq_n_f32(load::<NARROW>(values, value + i * WIDE), weight));
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            vst1q_f32(buffers.context.as_mut_ptr().add(head * d_v + column + i * WIDE), sum);
        }
    }
    VECTORS * WIDE
}

/// Four elements from element `at` on.
///
/// # Safety
/// They must be readable.
#[inline]
unsafe fn load<const NARROW: bool>(values: *const u8, at: usize) -> float32x4_t {
    // SAFETY: the caller's promise.
    unsafe {
        if NARROW {
            vreinterpretq_f32_u32(vshll_n_u16::<16>(vld1_u16(values.cast::<bf16>().add(at).cast())))
        } else {
            vld1q_f32(values.cast::<f32>().add(at))
        }
    }
}
