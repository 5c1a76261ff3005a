//! How well a key answers a query.
//!
//! ```text
//! additive     wᵀ tanh(W_q q + W_k k + b)    Bahdanau et al., 2015
//! dot          q · k                         Luong et al., 2015; equal widths
//! general      qᵀ W k                        Luong et al., 2015
//! scaled-dot   q · k / √d_k                  Vaswani et al., 2017; equal widths
//! ```
//!
//! Why scaled: with parts of unit variance the plain product has variance d_k, the softmax saturates as vectors get wide,
//! and its gradient dies.

/// How a query is compared with a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Score {
    /// `wᵀ tanh(W_q q + W_k k)`, with a width of its own.
    Additive,
    /// `q · k`.
    Dot,
    /// `qᵀ W k`.
    General,
    /// `q · k / √d_k`.
    #[default]
    ScaledDot,
}

impl Score {
    /// Whether queries and keys must have one width.
    #[inline]
    pub fn wants_equal_widths(self) -> bool {
        matches!(self, Score::Dot | Score::ScaledDot)
    }

    /// What the product of two vectors of this width is multiplied by.
    #[inline]
    pub fn scale(self, width: usize) -> f32 {
        if self == Score::ScaledDot { (width as f32).sqrt().recip() } else { 1.0 }
    }
}
