//! ```text
//! y = (x + ActivatedConvolution(x)) √½          N times (see `Balanced` for the form with a norm)
//! ```
//!
//! After N layers of kernel size k the receptive field of a state is (k − 1) N + 1 tokens. With dilation the
//! distance between kernel positions grows by a factor δ from layer to layer, and the receptive field is
//! (k − 1) (δ^N − 1) / (δ − 1) + 1.

use heedful_tensor::ops::Padding;
use heedful_tensor::{Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

use super::config::{Balance, ConvolutionKind, dilation_of, no_dilation};
use super::layers::{ActivatedConvolution, Balanced, ConvolutionShape};
use crate::layers::Pass;
use crate::models::config::{ConfigError, check};

/// The configuration of a convolutional encoder.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalEncoderConfig {
    /// Width of the token vectors between layers.
    pub d_model: usize,
    /// Number of layers.
    pub layers: usize,
    /// Kernel size; odd.
    pub taps: usize,
    /// The factor by which the dilation grows from layer to layer; 1 for no dilation.
    #[serde(default = "no_dilation")]
    pub dilation: usize,
    /// The activation after each convolution: gated (GLU) or ReLU.
    #[serde(default)]
    pub kind: ConvolutionKind,
    /// How the variance of residual sums is kept constant.
    pub balance: Balance,
    /// ε of the layer norms, if the model has any.
    pub norm_epsilon: f32,
    /// Dropout rate on the input of every convolution.
    pub dropout: f32,
}

impl ConvolutionalEncoderConfig {
    /// Checks that an encoder can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let ConvolutionalEncoderConfig { d_model, layers, taps, dilation, norm_epsilon, dropout, .. } = *self;
        check::sizes(&[("d_model", d_model), ("layers", layers), ("taps", taps), ("dilation", dilation)])?;
        check::odd_kernel("taps", taps)?;
        check::epsilon(norm_epsilon)?;
        check::rates(&[("stack.dropout", dropout)])
    }
}

/// A stack of convolutions: one state for each token.
pub(crate) struct ConvolutionalEncoder {
    layers: Vec<(ActivatedConvolution, Balanced)>,
}

impl ConvolutionalEncoder {
    /// Registers the parameters `<name>.<layer>.convolution.…` and, with norms, `<name>.<layer>.norm.…`.
    pub(crate) fn new(
        params: &Params,
        name: &str,
        shape: ConvolutionalEncoderConfig,
    ) -> ConvolutionalEncoder {
        let ConvolutionalEncoderConfig { d_model, taps, kind, balance, norm_epsilon, dropout, .. } = shape;
        let layer = |i: usize| {
            let name = format!("{name}.{i}");
            let dilation = dilation_of(shape.dilation, i);
            let window =
                ConvolutionShape { input: d_model, output: d_model, taps, dilation, padding: Padding::Same };
            let convolution = format!("{name}.convolution");
            let convolution = ActivatedConvolution::new(params, &convolution, window, kind, dropout);
            (convolution, Balanced::new(params, &format!("{name}.norm"), balance, d_model, norm_epsilon))
        };
        ConvolutionalEncoder { layers: (0..shape.layers).map(layer).collect() }
    }

    /// One state for each embedded token.
    pub(crate) fn forward(&self, embedded: Tensor, sequences: &Ragged, pass: &mut Pass) -> Tensor {
        self.layers.iter().fold(embedded, |x, (convolution, balanced)| {
            let y = convolution.forward(&x, sequences, pass);
            balanced.sum(&x, &y, pass)
        })
    }
}
