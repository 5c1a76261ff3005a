//! Softmax over the scores of a sequence, and the sum of its values.

use super::{add_scaled, each_sequence, elements, scaled, store};
use crate::cpu::math::exp;
use crate::cpu::number::{self, Numbers, SharedNumbers};
use crate::cpu::threads::SharedMut;
use crate::{Array, DType, Ragged};

/// Weights and what they make of the values.
pub(in crate::ops::pool) fn forward(scores: &Array, values: &Array, sequences: &Ragged) -> (Array, Array) {
    let weights = weights(scores, sequences);
    let pooled = weighted_sums(&weights, values, sequences);
    (weights, pooled)
}

fn weights(scores: &Array, sequences: &Ragged) -> Array {
    let mut weights = scores.to(DType::F32);
    let shared = SharedMut::new(weights.f32_mut());
    each_sequence(sequences, |sequence, rows| {
        // SAFETY: sequences have disjoint rows.
        let top = softmax(unsafe { shared.slice(rows) });
        assert!(top > f32::NEG_INFINITY, "attention_pool: sequence {sequence} has no score above −∞");
    });
    weights
}

/// `y = Σ_t α_t v_t`.
fn weighted_sums(weights: &Array, values: &Array, sequences: &Ragged) -> Array {
    let width = values.width();
    let mut pooled = Array::scratch(values.dtype(), sequences.sequences(), width);
    let (numbers, out) = (Numbers::of(values), SharedNumbers::of(&mut pooled));
    each_sequence(sequences, |sequence, rows| {
        let mut sums = Array::zeros(DType::F32, 1, width);
        for row in rows {
            let value = numbers.part(elements(&(row..row + 1), width));
            add_scaled(weights.f32()[row], value, sums.f32_mut());
        }
        // SAFETY: every sequence has its own row.
        store(1.0, sums.f32(), unsafe { out.slice(elements(&(sequence..sequence + 1), width)) });
    });
    pooled
}

/// `dv_t = α_t dy`.
pub(in crate::ops::pool) fn value_gradient(weights: &Array, g: &Array, sequences: &Ragged) -> Array {
    let width = g.width();
    let mut dv = Array::scratch(g.dtype(), sequences.tokens(), width);
    let out = SharedNumbers::of(&mut dv);
    each_sequence(sequences, |sequence, rows| {
        let dy = Numbers::of(g).part(elements(&(sequence..sequence + 1), width));
        for row in rows {
            // SAFETY: sequences have disjoint rows.
            scaled(weights.f32()[row], dy, unsafe { out.slice(elements(&(row..row + 1), width)) });
        }
    });
    dv
}

/// `ds_t = α_t (dα_t − Σ_u α_u dα_u)` with `dα_t = dy · v_t`.
pub(in crate::ops::pool) fn score_gradient(
    weights: &Array,
    g: &Array,
    values: &Array,
    sequences: &Ragged,
) -> Array {
    let width = g.width();
    let mut ds = Array::scratch(DType::F32, sequences.tokens(), 1);
    let shared = SharedMut::new(ds.f32_mut());
    let (dy, values) = (Numbers::of(g), Numbers::of(values));
    each_sequence(sequences, |sequence, rows| {
        let dy = dy.part(elements(&(sequence..sequence + 1), width));
        // SAFETY: sequences have disjoint rows.
        let ds = unsafe { shared.slice(rows.clone()) };
        for (ds, row) in ds.iter_mut().zip(rows.clone()) {
            *ds = product(dy, values.part(elements(&(row..row + 1), width)));
        }
        finish(&weights.f32()[rows], ds);
    });
    ds
}

kernel! {
    /// Softmax in place; returns the largest score.
    fn softmax(scores: &mut [f32]) -> f32 {
        let top = number::max(scores);
        for score in &mut *scores {
            *score = exp(*score - top);
        }
        let total = number::sum(scores, |power| power);
        for score in scores {
            *score /= total;
        }
        top
    }
}

kernel! {
    fn product(a: Numbers<'_>, b: Numbers<'_>) -> f32 {
        match (a, b) {
            (Numbers::F32(a), Numbers::F32(b)) => number::sum_of_two(a, b, |a, b| a * b),
            (Numbers::Bf16(a), Numbers::Bf16(b)) => number::sum_of_two(a, b, |a, b| a * b),
            _ => unreachable!("a gradient has the type of its values"),
        }
    }
}

kernel! {
    fn finish(weights: &[f32], ds: &mut [f32]) {
        let along = number::sum_of_two(weights, ds, |weight, slope| weight * slope);
        for (ds, weight) in ds.iter_mut().zip(weights) {
            *ds = weight * (*ds - along);
        }
    }
}
