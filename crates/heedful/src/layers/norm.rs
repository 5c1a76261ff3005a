//! `LayerNorm(x) = γ (x − mean) / √(var + ε) + β`, per position over its features, and the residual around a
//! sublayer:
//!
//! ```text
//! post-norm   LayerNorm(x + dropout(sublayer(x)))      as in the paper
//! pre-norm    x + dropout(sublayer(LayerNorm(x)))      trains without warmup; the stack needs a final norm
//! ```
//!
//! A [`Normalization`] may be a [`BatchNorm`] instead, over all positions of a batch, for comparison with
//! layer norm.

use heedful_tensor::ops::{self, NormOptions};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Init, Param, Params, Tensor};
use serde::{Deserialize, Serialize};

use super::{BatchNorm, Pass};

/// Where the layer norms are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// After the residual, as in the paper.
    #[default]
    Post,
    /// Before the sublayer.
    Pre,
}

/// The dimension that the norms of a model normalize over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormKind {
    /// The features of each position.
    #[default]
    Layer,
    /// The positions of a batch, each feature on its own.
    Batch,
}

impl NormKind {
    /// Whether it is the default, which is not serialized.
    pub(crate) fn is_layer(&self) -> bool {
        *self == NormKind::Layer
    }
}

/// A layer norm with parameters `<name>.gamma` and `<name>.beta`.
#[derive(Clone)]
pub struct LayerNorm {
    gamma: Param,
    beta: Param,
    epsilon: f32,
}

impl LayerNorm {
    /// Over vectors of width `d`.
    pub fn new(params: &Params, name: &str, d: usize, epsilon: f32) -> LayerNorm {
        LayerNorm {
            gamma: params.add(&format!("{name}.gamma"), 1, d, Init::Constant(1.0)),
            beta: params.add(&format!("{name}.beta"), 1, d, Init::Constant(0.0)),
            epsilon,
        }
    }

    /// `LayerNorm(x)`.
    pub fn forward(&self, x: &Tensor, pass: &Pass) -> Tensor {
        ops::layer_norm(x, &self.gamma, &self.beta, self.options(pass))
    }

    /// `LayerNorm(x + dropout(sublayer))`, fused.
    pub fn of_sum(&self, x: &Tensor, sublayer: &Tensor, dropout: Dropout, pass: &Pass) -> Tensor {
        ops::residual_norm(x, sublayer, &self.gamma, &self.beta, dropout, self.options(pass))
    }

    fn options(&self, pass: &Pass) -> NormOptions {
        NormOptions { epsilon: self.epsilon, compute: pass.compute() }
    }
}

/// A norm of either kind.
#[derive(Clone)]
pub enum Normalization {
    /// Over the features of each position.
    Layer(LayerNorm),
    /// Over the positions of a batch.
    Batch(BatchNorm),
}

impl Normalization {
    /// Over vectors of width `d`.
    pub fn new(params: &Params, name: &str, kind: NormKind, d: usize, epsilon: f32) -> Normalization {
        match kind {
            NormKind::Layer => Normalization::Layer(LayerNorm::new(params, name, d, epsilon)),
            NormKind::Batch => Normalization::Batch(BatchNorm::new(params, name, d, epsilon)),
        }
    }

    /// `Norm(x)`.
    pub fn forward(&self, x: &Tensor, pass: &mut Pass) -> Tensor {
        match self {
            Normalization::Layer(norm) => norm.forward(x, pass),
            Normalization::Batch(norm) => norm.forward(x, pass),
        }
    }

    /// `Norm(x + dropout(sublayer))`.
    pub fn of_sum(&self, x: &Tensor, sublayer: &Tensor, dropout: Dropout, pass: &mut Pass) -> Tensor {
        match self {
            Normalization::Layer(norm) => norm.of_sum(x, sublayer, dropout, pass),
            Normalization::Batch(norm) => norm.forward(&ops::residual(x, sublayer, dropout), pass),
        }
    }
}

/// The residual connection around one sublayer, with its norm and its dropout.
#[derive(Clone)]
pub struct Residual {
    norm: Normalization,
    order: Norm,
    dropout: f32,
}

impl Residual {
    /// A residual connection around a sublayer with this norm, and dropout at this rate on the sublayer's
    /// output.
    pub fn new(norm: Normalization, order: Norm, dropout: f32) -> Residual {
        Residual { norm, order, dropout }
    }

    /// Post-norm or pre-norm as above, for `sublayer`.
    pub fn around(
        &self,
        x: &Tensor,
        pass: &mut Pass,
        sublayer: impl FnOnce(&Tensor, &mut Pass) -> Tensor,
    ) -> Tensor {
        match self.order {
            Norm::Post => {
                let y = sublayer(x, pass);
                let dropout = pass.dropout(self.dropout);
                self.norm.of_sum(x, &y, dropout, pass)
            }
            Norm::Pre => {
                let normed = self.norm.forward(x, pass);
                let y = sublayer(&normed, pass);
                ops::residual(x, &y, pass.dropout(self.dropout))
            }
        }
    }
}
