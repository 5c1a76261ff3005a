//! Attention pooling: a learned score for each token, a softmax over each sequence.
//!
//! ```text
//! α = softmax(s)        y = Σ_t α_t v_t
//! dv_t = α_t dy         dα_t = dy · v_t         ds_t = α_t (dα_t − Σ_u α_u dα_u)
//! ```
//!
//! Kept for backward: the values, which are there anyway, and α.

use super::{add_scaled, check, each_sequence, elements, scaled, store};
use crate::cpu::math::exp;
use crate::cpu::number::{self, Numbers, SharedNumbers};
use crate::cpu::threads::SharedMut;
use crate::{Array, DType, Ragged, Tensor};

/// What [`attention_pool`] returns.
pub struct Pooled {
    /// `sequences × d`.
    pub pooled: Tensor,
    /// `tokens × 1`, f32, no gradient: how much of each token went into its sequence's vector. The weights of sequence
    /// i are the rows `sequences.range(i)`; they sum to 1.
    pub weights: Tensor,
}

/// `Σ_t softmax(scores)_t values_t` over the tokens of each sequence.
///
/// # Panics
/// If the shapes do not fit, a sequence has no token, or all its scores are −∞.
pub fn attention_pool(scores: &Tensor, values: &Tensor, sequences: &Ragged) -> Pooled {
    check("attention_pool", values, sequences);
    assert!(
        scores.shape() == [values.rows(), 1],
        "attention_pool: scores are {:?}, values are {:?}",
        scores.shape(),
        values.shape()
    );
    let weights = Tensor::new(weights(scores.array(), sequences));
    let pooled = mixed(weights.array(), values.array(), sequences);

    let (edges, score_type) = ([scores.edge(), values.edge()], scores.dtype());
    let (alpha, kept, sequences) = (weights.clone(), values.detached(), sequences.clone());
    let pooled = Tensor::from_inputs(pooled, &[scores, values], move |g, gradients| {
        let [score_edge, value_edge] = edges;
        if value_edge.is_wanted() {
            gradients.add(&value_edge, spread(alpha.array(), &g, &sequences));
        }
        if score_edge.is_wanted() {
            let ds = score_gradient(alpha.array(), &g, kept.array(), &sequences);
            gradients.add(&score_edge, ds.into_dtype(score_type));
        }
    });
    Pooled { pooled, weights }
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
fn mixed(weights: &Array, values: &Array, sequences: &Ragged) -> Array {
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
fn spread(weights: &Array, g: &Array, sequences: &Ragged) -> Array {
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
fn score_gradient(weights: &Array, g: &Array, values: &Array, sequences: &Ragged) -> Array {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_one_in_every_sequence_and_huge_scores_choose() {
        let scores = Tensor::from_f32(4, 1, &[7.0, 1e30, -1e30, 1e30]);
        let values = Tensor::from_f32(4, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        let found = attention_pool(&scores, &values, &Ragged::from_lengths([1, 3]));
        assert_eq!(found.weights.to_vec(), [1.0, 0.5, 0.0, 0.5]);
        assert_eq!(found.pooled.to_vec(), [1.0, 2.0, 5.0, 6.0]);
    }

    #[test]
    #[should_panic(expected = "attention_pool: sequence 1 has no token")]
    fn a_sequence_without_tokens_is_refused() {
        let x = Tensor::from_f32(1, 1, &[0.0]);
        attention_pool(&x, &x, &Ragged::from_lengths([1, 0]));
    }

    #[test]
    #[should_panic(expected = "attention_pool: sequence 0 has no score above −∞")]
    fn a_sequence_without_scores_is_refused() {
        let x = Tensor::from_f32(1, 1, &[0.0]);
        attention_pool(&Tensor::from_f32(1, 1, &[f32::NEG_INFINITY]), &x, &Ragged::from_lengths([1]));
    }
}
