//! The softmax with uniform rounding, in plain Rust: the same bits on every instruction set.

use super::Buffers;
use crate::cpu::math::exp;
use crate::cpu::simd::{LANES, Lanes, fold};

kernel! {
    /// `P = softmax(S)` for the first `count` positions of all heads.
    pub(super) fn softmax_of_heads(heads: usize, count: usize, buffers: &mut Buffers<'_>) {
        let padded = count.next_multiple_of(LANES);
        for weights in buffers.weights.chunks_exact_mut(buffers.stride).take(heads) {
            weights[count..padded].fill(f32::NEG_INFINITY);
            softmax(&mut weights[..padded]);
        }
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
