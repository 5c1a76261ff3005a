//! One query with uniform rounding, in plain Rust: the same bits as `avx512` for heads of whole vectors.

use super::{Buffers, Sizes, score, weighted_sum};
use crate::cpu::math::exp;
use crate::cpu::number::Number;
use crate::cpu::simd::{LANES, Lanes, fold};

kernel! {
    /// Fills `buffers.context` from `buffers.query`, which is scaled.
    pub(super) fn attend<T: Number>(stored: &[T], starts: &[usize], sizes: Sizes, buffers: &mut Buffers<'_>) {
        score(stored, starts, sizes, buffers);

        // P = softmax(S)
        let padded = starts.len().next_multiple_of(LANES);
        for weights in buffers.weights.chunks_exact_mut(buffers.stride).take(sizes.heads) {
            weights[starts.len()..padded].fill(f32::NEG_INFINITY);
            softmax(&mut weights[..padded]);
        }

        weighted_sum(stored, starts, sizes, buffers);
    }
}

/// `P = softmax(S)` for one head in whole vectors; −∞ becomes exactly 0.
#[inline(always)]
pub(super) fn softmax(weights: &mut [f32]) {
    let (vectors, _) = weights.as_chunks_mut::<LANES>();
    let mut tops: Lanes = [f32::NEG_INFINITY; LANES];
    for vector in &*vectors {
        for lane in 0..LANES {
            tops[lane] = if vector[lane] > tops[lane] { vector[lane] } else { tops[lane] };
        }
    }
    let top = fold(tops, |a, b| if b > a { b } else { a });
    let mut sums: Lanes = [0.0; LANES];
    for vector in &mut *vectors {
        for lane in 0..LANES {
            vector[lane] = exp(vector[lane] - top);
            sums[lane] += vector[lane];
        }
    }
    let share = 1.0 / fold(sums, |a, b| a + b);
    for vector in vectors {
        for weight in vector {
            *weight *= share;
        }
    }
}
