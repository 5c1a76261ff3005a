//! ```text
//! y = (x + GatedConvolution(x)) √½          N times (see `Balanced` for the form with a norm)
//! ```
//!
//! After N layers of k taps the receptive field of a state is (k − 1) N + 1 tokens.

use heedful_tensor::ops::Reach;
use heedful_tensor::{Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

use super::config::Balance;
use super::layers::{Balanced, ConvolutionShape, GatedConvolution};
use crate::layers::Pass;

/// The configuration of a convolutional encoder.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalEncoderConfig {
    /// Width of the vector of a token, between all layers.
    pub d_model: usize,
    /// Number of layers.
    pub layers: usize,
    /// Number of tokens in a window; odd.
    pub taps: usize,
    /// What keeps the variance of residual sums constant.
    pub balance: Balance,
    /// ε of the layer norms, if there are any.
    pub norm_epsilon: f32,
    /// Dropout rate on the input of every convolution.
    pub dropout: f32,
}

/// A stack of gated convolutions: one state for each token.
pub struct ConvolutionalEncoder {
    layers: Vec<(GatedConvolution, Balanced)>,
}

impl ConvolutionalEncoder {
    /// Registers the parameters `<name>.<layer>.convolution.…` and, with norms, `<name>.<layer>.norm.…`.
    pub fn new(params: &Params, name: &str, shape: ConvolutionalEncoderConfig) -> ConvolutionalEncoder {
        let ConvolutionalEncoderConfig { d_model, taps, balance, norm_epsilon, dropout, .. } = shape;
        let window = ConvolutionShape { input: d_model, output: d_model, taps, reach: Reach::Same };
        let layer = |i: usize| {
            let name = format!("{name}.{i}");
            let gated = GatedConvolution::new(params, &format!("{name}.convolution"), window, dropout);
            (gated, Balanced::new(params, &format!("{name}.norm"), balance, d_model, norm_epsilon))
        };
        ConvolutionalEncoder { layers: (0..shape.layers).map(layer).collect() }
    }

    /// From embedded tokens to their states.
    pub fn forward(&self, embedded: Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        self.layers.iter().fold(embedded, |x, (gated, balanced)| {
            let y = gated.forward(&x, sequences, pass);
            balanced.sum(&x, &y, pass)
        })
    }
}
