//! The scores by which attention compares a query with a key.
//!
//! ```text
//! additive     wᵀ tanh(W_q q + W_k k + b)    Bahdanau et al., 2015
//! dot          q · k                         Luong et al., 2015; equal widths
//! general      qᵀ W k                        Luong et al., 2015
//! scaled-dot   q · k / √d_k                  Vaswani et al., 2017; equal widths
//! ```
//!
//! Why scaled: if the components have unit variance, the dot product has variance d_k; for wide vectors the softmax
//! saturates and its gradient vanishes.

use heedful_tensor::ops::{self, RowScore};
use heedful_tensor::{Init, Param, Params, Tensor};
use serde::{Deserialize, Serialize};

use super::{Linear, Pass};

/// How a query is compared with a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttentionScore {
    /// `wᵀ tanh(W_q q + W_k k)`, with a hidden layer of its own width.
    Additive,
    /// `q · k`.
    Dot,
    /// `qᵀ W k`.
    General,
    /// `q · k / √d_k`.
    #[default]
    ScaledDot,
}

impl AttentionScore {
    /// Whether queries and keys must have the same width.
    pub fn requires_equal_widths(self) -> bool {
        matches!(self, AttentionScore::Dot | AttentionScore::ScaledDot)
    }

    /// The factor on the dot product of two vectors of this width.
    pub fn scale(self, width: usize) -> f32 {
        if self == AttentionScore::ScaledDot { (width as f32).sqrt().recip() } else { 1.0 }
    }
}

/// A score with its parameters: those of `<name>.query.weight`, `<name>.key.…` and `<name>.score.weight` that it needs.
#[derive(Clone)]
pub struct Scorer {
    score: AttentionScore,
    query: Option<Param>,
    key: Option<Linear>,
    weight: Option<Param>,
    scale: f32,
}

impl Scorer {
    /// Compares queries of width `query` with keys of width `key`; `inner` is the width of the additive score's hidden layer.
    ///
    /// # Panics
    /// If the score requires equal widths and these differ.
    pub fn new(
        params: &Params,
        name: &str,
        score: AttentionScore,
        [query, key, inner]: [usize; 3],
    ) -> Scorer {
        let fits = !score.requires_equal_widths() || query == key;
        assert!(fits, "Scorer: {score:?} for queries of {query} and keys of {key}");
        let matrix =
            |part: &str, rows, width| params.add(&format!("{name}.{part}.weight"), rows, width, Init::Xavier);
        let is_additive = score == AttentionScore::Additive;
        Scorer {
            score,
            query: match score {
                AttentionScore::Additive => Some(matrix("query", query, inner)),
                AttentionScore::General => Some(matrix("query", query, key)),
                AttentionScore::Dot | AttentionScore::ScaledDot => None,
            },
            key: is_additive.then(|| Linear::new(params, &format!("{name}.key"), key, inner)),
            weight: is_additive.then(|| matrix("score", 1, inner)),
            scale: score.scale(key),
        }
    }

    /// The kind of score.
    pub fn score(&self) -> AttentionScore {
        self.score
    }

    /// The projected keys, which are computed once for all queries.
    pub fn keys(&self, memory: &Tensor, pass: &Pass) -> Tensor {
        self.key.as_ref().map_or_else(|| memory.clone(), |key| key.forward(memory, pass))
    }

    /// The projection of the queries, if there is one.
    pub fn query(&self) -> Option<&Param> {
        self.query.as_ref()
    }

    /// The projected queries, as [`ops::look_at`] takes them (f32). No gradient flows back.
    pub fn queries(&self, states: &Tensor, pass: &Pass) -> Tensor {
        self.query.as_ref().map_or_else(|| states.clone(), |query| ops::times(states, query, pass.compute()))
    }

    /// The comparison of projected queries with projected keys.
    pub fn row_score(&self) -> RowScore<'_> {
        match &self.weight {
            Some(weight) => RowScore::Additive(weight),
            None => RowScore::Dot { scale: self.scale },
        }
    }
}
