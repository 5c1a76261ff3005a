//! One query, all heads: a stored row is read once, from its first number to its last.

use half::bf16;

use super::KeyValueRows;
use crate::cpu::math::exp;
use crate::cpu::number::{self, Number, Numbers, NumbersMut};
use crate::cpu::simd::{LANES, Lanes, fold};
use crate::{Array, DType};

#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) heads: usize,
    pub(super) d_k: usize,
    pub(super) d_v: usize,
    pub(super) scale: f32,
}

/// One task's scratch memory.
pub(super) struct Room {
    sizes: Sizes,
    longest: usize,
    memory: Array,
}

/// The parts of a [`Room`].
struct Parts<'a> {
    query: &'a mut [f32],
    context: &'a mut [f32],
    /// `[head][position]`, `stride` apart.
    weights: &'a mut [f32],
    stride: usize,
}

impl Room {
    pub(super) fn new(sizes: Sizes, longest: usize) -> Room {
        let len = sizes.heads * (sizes.d_k + sizes.d_v + longest.next_multiple_of(LANES));
        Room { sizes, longest, memory: Array::scratch(DType::F32, 1, len) }
    }

    pub(super) fn attend(&mut self, query: Numbers<'_>, seen: &KeyValueRows<'_>, out: NumbersMut<'_>) {
        let Sizes { heads, d_k, d_v, .. } = self.sizes;
        let stride = self.longest.next_multiple_of(LANES);
        let (query_room, rest) = self.memory.f32_mut().split_at_mut(heads * d_k);
        let (context, weights) = rest.split_at_mut(heads * d_v);
        let parts = Parts { query: query_room, context, weights, stride };
        match (Numbers::of(seen.array()), query, out) {
            (Numbers::F32(stored), Numbers::F32(query), NumbersMut::F32(out)) => {
                attend_f32(query, stored, seen, self.sizes, parts, out);
            }
            (Numbers::Bf16(stored), Numbers::Bf16(query), NumbersMut::Bf16(out)) => {
                attend_bf16(query, stored, seen, self.sizes, parts, out);
            }
            _ => panic!("cached attention: queries and keys of different types"),
        }
    }
}

kernel! {
    fn attend_f32(
        query: &[f32],
        stored: &[f32],
        seen: &KeyValueRows<'_>,
        sizes: Sizes,
        parts: Parts<'_>,
        out: &mut [f32],
    ) {
        attend(query, stored, seen, sizes, parts, out);
    }
}

kernel! {
    fn attend_bf16(
        query: &[bf16],
        stored: &[bf16],
        seen: &KeyValueRows<'_>,
        sizes: Sizes,
        parts: Parts<'_>,
        out: &mut [bf16],
    ) {
        attend(query, stored, seen, sizes, parts, out);
    }
}

#[inline(always)]
fn attend<T: Number>(
    query: &[T],
    stored: &[T],
    seen: &KeyValueRows<'_>,
    sizes: Sizes,
    parts: Parts<'_>,
    out: &mut [T],
) {
    let Sizes { heads, d_k, d_v, scale } = sizes;
    let (key_width, width) = (heads * d_k, heads * (d_k + d_v));
    let Parts { query: scaled, context, weights, stride } = parts;
    for (scaled, query) in scaled.iter_mut().zip(query) {
        *scaled = query.wide() * scale;
    }
    let n = seen.len();

    // S = scale · q Kᵀ
    for position in 0..n {
        let start = seen.row(position) * width;
        let key = &stored[start..start + key_width];
        for (head, (query, key)) in scaled.chunks_exact(d_k).zip(key.chunks_exact(d_k)).enumerate() {
            // Finite even if the sum overflowed: ∞ − ∞ is no number.
            weights[head * stride + position] = dot(query, key).clamp(f32::MIN, f32::MAX);
        }
    }

    // P = softmax(S)
    for weights in weights.chunks_exact_mut(stride) {
        let weights = &mut weights[..n];
        let top = number::max(weights);
        for weight in &mut *weights {
            *weight = exp(*weight - top);
        }
        let share = 1.0 / weights.iter().sum::<f32>();
        for weight in weights {
            *weight *= share;
        }
    }

    // o = P V
    context.fill(0.0);
    for position in 0..n {
        let start = seen.row(position) * width + key_width;
        let value = &stored[start..start + heads * d_v];
        for (head, (context, value)) in context.chunks_exact_mut(d_v).zip(value.chunks_exact(d_v)).enumerate()
        {
            let weight = weights[head * stride + position];
            for (context, value) in context.iter_mut().zip(value) {
                *context += weight * value.wide();
            }
        }
    }
    number::copy(context, out);
}

/// `q · k`, sixteen partial sums and what is left over.
#[inline(always)]
fn dot<T: Number>(query: &[f32], key: &[T]) -> f32 {
    let mut sums: Lanes = [0.0; LANES];
    let ((query, query_rest), (key, key_rest)) = (query.as_chunks::<LANES>(), key.as_chunks::<LANES>());
    for (query, key) in query.iter().zip(key) {
        for lane in 0..LANES {
            sums[lane] += query[lane] * key[lane].wide();
        }
    }
    for (lane, (query, key)) in query_rest.iter().zip(key_rest).enumerate() {
        sums[lane] += query * key.wide();
    }
    fold(sums, |a, b| a + b)
}
