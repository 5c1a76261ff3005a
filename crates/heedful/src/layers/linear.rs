//! `y = dropout(activation(x W + b))`, W `[in, out]`.

use heedful_tensor::ops::{self, Activation, LinearOptions};
use heedful_tensor::random::Dropout;
use heedful_tensor::{Channels, Init, Param, Params, Tensor};

use super::Pass;

/// A linear layer with parameters `<name>.weight` and `<name>.bias`.
#[derive(Clone)]
pub struct Linear {
    weight: Param,
    bias: Param,
}

impl Linear {
    /// A layer from vectors of width `input` to vectors of width `output`.
    pub fn new(params: &Params, name: &str, input: usize, output: usize) -> Linear {
        Linear {
            weight: params.add_weight(
                &format!("{name}.weight"),
                [input, output],
                Init::Xavier,
                Channels::Columns,
            ),
            bias: params.add(&format!("{name}.bias"), 1, output, Init::Constant(0.0)),
        }
    }

    /// `x W + b`.
    pub fn forward(&self, x: &Tensor, pass: &Pass) -> Tensor {
        self.activated(x, Activation::Identity, Dropout::NONE, pass)
    }

    /// `dropout(activation(x W + b))`, fused into the matrix product.
    pub fn activated(&self, x: &Tensor, activation: Activation, dropout: Dropout, pass: &Pass) -> Tensor {
        let options = LinearOptions { activation, dropout, compute: pass.compute() };
        ops::linear(x, &self.weight, Some(&self.bias), options)
    }
}
