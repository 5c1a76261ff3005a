//! Soft and hard attention.

use crate::random::Stream;

/// How a context is made of attention weights: soft attention sums all values, hard attention selects one.
#[derive(Clone, Copy, Debug)]
pub enum Selection {
    /// The weighted sum of all values.
    Soft,
    /// The value of the largest weight: hard attention at inference.
    Best,
    /// One value, sampled with the weights as probabilities: hard attention in training. Token `i` uses draw
    /// `i`.
    Sampled {
        /// The random stream of the draws.
        stream: Stream,
        /// The fraction of tokens, sampled too, that get the weighted sum instead, whose gradient reaches
        /// every weight (Xu et al., 2015: half of them).
        soft_share: f32,
        /// How the gradient passes through the draw.
        estimator: Estimator,
    },
}

/// How the weights of hard attention are trained although a draw has no gradient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// By the score function alone (REINFORCE): through the logarithm of the drawn weight, which the caller
    /// multiplies by the advantage of the draw.
    #[default]
    ScoreFunction,
    /// As if the context had been the weighted sum.
    StraightThrough,
}
