//! `LayerNorm(x) = γ (x − mean) / √(var + ε) + β`, per position over its features, and the residual around a
//! sublayer:
//!
//! ```text
//! post-norm   LayerNorm(x + dropout(sublayer(x)))      as in the paper
//! pre-norm    x + dropout(sublayer(LayerNorm(x)))      trains without warm-up; the stack needs one more norm at its end
//! ```

use heedful_tensor::ops::{self, NormOptions};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Init, Param, Params, Tensor};
use serde::{Deserialize, Serialize};

use super::Pass;

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

/// The residual connection around one sublayer, with its norm and its dropout.
#[derive(Clone)]
pub struct Residual {
    norm: LayerNorm,
    order: Norm,
    dropout: f32,
}

impl Residual {
    /// Around a sublayer whose norm is `norm`, with dropout at this rate on the sublayer's output.
    pub fn new(norm: LayerNorm, order: Norm, dropout: f32) -> Residual {
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
