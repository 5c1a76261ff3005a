//! How well a key answers a query: the scores of the story, as values.
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

use heedful_tensor::ops::{self, RowScore};
use heedful_tensor::{Init, Param, Params, Tensor};
use serde::{Deserialize, Serialize};

use super::{Linear, Pass};

/// How a query is compared with a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
    pub fn wants_equal_widths(self) -> bool {
        matches!(self, Score::Dot | Score::ScaledDot)
    }

    /// What the product of two vectors of this width is multiplied by.
    pub fn scale(self, width: usize) -> f32 {
        if self == Score::ScaledDot { (width as f32).sqrt().recip() } else { 1.0 }
    }
}

/// A score with its parameters: `<name>.query.weight`, `<name>.key.…` and `<name>.score.weight` as far as it has them.
#[derive(Clone)]
pub struct Scorer {
    score: Score,
    query: Option<Param>,
    key: Option<Linear>,
    weight: Option<Param>,
    scale: f32,
}

impl Scorer {
    /// Compares queries of width `query` with keys of width `key`; `inner` is the width in which the additive score does.
    ///
    /// # Panics
    /// If the score wants equal widths and these are not.
    pub fn new(params: &Params, name: &str, score: Score, [query, key, inner]: [usize; 3]) -> Scorer {
        let fits = !score.wants_equal_widths() || query == key;
        assert!(fits, "Scorer: {score:?} for queries of {query} and keys of {key}");
        let matrix =
            |part: &str, rows, width| params.add(&format!("{name}.{part}.weight"), rows, width, Init::Xavier);
        let is_additive = score == Score::Additive;
        Scorer {
            score,
            query: match score {
                Score::Additive => Some(matrix("query", query, inner)),
                Score::General => Some(matrix("query", query, key)),
                Score::Dot | Score::ScaledDot => None,
            },
            key: is_additive.then(|| Linear::new(params, &format!("{name}.key"), key, inner)),
            weight: is_additive.then(|| matrix("score", 1, inner)),
            scale: score.scale(key),
        }
    }

    /// Which score it is.
    pub fn score(&self) -> Score {
        self.score
    }

    /// What queries are compared with, computed once for each key.
    pub fn keys(&self, memory: &Tensor, pass: &Pass) -> Tensor {
        self.key.as_ref().map_or_else(|| memory.clone(), |key| key.forward(memory, pass))
    }

    /// The matrix that queries go through first, if there is one.
    pub fn query(&self) -> Option<&Param> {
        self.query.as_ref()
    }

    /// Queries as [`ops::look_at`] takes them (f32). No gradient flows back.
    pub fn queries(&self, states: &Tensor, pass: &Pass) -> Tensor {
        self.query.as_ref().map_or_else(|| states.clone(), |query| ops::times(states, query, pass.compute()))
    }

    /// The comparison that is left when queries and keys have gone through their matrices.
    pub fn row_score(&self) -> RowScore<'_> {
        match &self.weight {
            Some(weight) => RowScore::Additive(weight),
            None => RowScore::Dot { scale: self.scale },
        }
    }
}
