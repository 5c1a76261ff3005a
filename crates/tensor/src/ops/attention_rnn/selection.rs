//! Soft and hard attention.

use crate::random::Stream;

/// What becomes of attention weights: soft attention sums all values, hard attention selects one.
#[derive(Clone, Copy, Debug)]
pub enum Selection {
    /// The weighted sum of all values.
    Soft,
    /// The value of the largest weight: hard attention when it is used.
    Best,
    /// One value, drawn with the weights as probabilities: hard attention in training. Token `i` takes draw `i`.
    Sampled {
        /// Where the draws come from.
        stream: Stream,
        /// So many of the tokens, drawn too, get the weighted sum instead, whose gradient reaches every
        /// weight (Xu et al., 2015: half of them).
        soft_share: f32,
        /// How a gradient comes past the draw.
        estimator: Estimator,
    },
}

/// How the weights of hard attention learn though a draw has no gradient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// By the score function alone: through the logarithm of the drawn weight, which the caller multiplies by how much
    /// better than expected the draw turned out to be.
    #[default]
    ScoreFunction,
    /// As if the context had been the weighted sum.
    StraightThrough,
}
