//! One query with uniform rounding, in plain Rust: what `avx512` does for heads of whole vectors, to the bit.

use super::{Parts, Sizes, dot};
use crate::cpu::math::exp;
use crate::cpu::number::Number;
use crate::cpu::simd::{LANES, Lanes, fold};

/// Fills `parts.context` from `parts.query`, which is scaled.
#[inline(always)]
pub(super) fn attend<T: Number>(stored: &[T], starts: &[usize], sizes: Sizes, parts: &mut Parts<'_>) {
    let Sizes { heads, d_k, d_v, .. } = sizes;
    let Parts { query, context, weights, stride } = parts;
    let (key_width, stride) = (heads * d_k, *stride);
    let padded = starts.len().next_multiple_of(LANES);

    // S = scale · q Kᵀ
    for (position, &start) in starts.iter().enumerate() {
        let key = &stored[start..start + key_width];
        for (head, (query, key)) in query.chunks_exact(d_k).zip(key.chunks_exact(d_k)).enumerate() {
            // Finite even if the sum overflowed: ∞ − ∞ is no number.
            weights[head * stride + position] = dot(query, key).clamp(f32::MIN, f32::MAX);
        }
    }

    // P = softmax(S)
    for weights in weights.chunks_exact_mut(stride).take(heads) {
        weights[starts.len()..padded].fill(f32::NEG_INFINITY);
        softmax(&mut weights[..padded]);
    }

    // o = P V
    context.fill(0.0);
    for (position, &start) in starts.iter().enumerate() {
        let value = &stored[start + key_width..start + key_width + heads * d_v];
        for (head, (context, value)) in context.chunks_exact_mut(d_v).zip(value.chunks_exact(d_v)).enumerate()
        {
            let weight = weights[head * stride + position];
            for (context, value) in context.iter_mut().zip(value) {
                *context += weight * value.wide();
            }
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
