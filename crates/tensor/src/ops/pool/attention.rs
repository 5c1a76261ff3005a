//! Attention pooling: a learned score for each token, a softmax over each sequence.
//!
//! ```text
//! α = softmax(s)        y = Σ_t α_t v_t
//! dv_t = α_t dy         dα_t = dy · v_t         ds_t = α_t (dα_t − Σ_u α_u dα_u)
//! ```
//!
//! Kept for backward: the values, which are there anyway, and α.

use super::check;
use super::cpu::attention as cpu;
use super::cuda::attention as cuda;
use crate::{Device, Ragged, Tensor};

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
    let (weights, pooled) = match values.device() {
        Device::Cpu => cpu::forward(scores.array(), values.array(), sequences),
        Device::Cuda => cuda::forward(scores.array(), values.array(), sequences),
    };
    let weights = Tensor::new(weights);

    let (edges, score_type) = ([scores.edge(), values.edge()], scores.dtype());
    let (alpha, kept, sequences) = (weights.clone(), values.detached(), sequences.clone());
    let pooled = Tensor::from_inputs(pooled, &[scores, values], move |g, gradients| {
        let [score_edge, value_edge] = edges;
        if value_edge.is_wanted() {
            let dv = match g.device() {
                Device::Cpu => cpu::value_gradient(alpha.array(), &g, &sequences),
                Device::Cuda => cuda::value_gradient(alpha.array(), &g, &sequences),
            };
            gradients.add(&value_edge, dv);
        }
        if score_edge.is_wanted() {
            let ds = match g.device() {
                Device::Cpu => cpu::score_gradient(alpha.array(), &g, kept.array(), &sequences),
                Device::Cuda => cuda::score_gradient(alpha.array(), &g, kept.array(), &sequences),
            };
            gradients.add(&score_edge, ds.into_dtype(score_type));
        }
    });
    Pooled { pooled, weights }
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
