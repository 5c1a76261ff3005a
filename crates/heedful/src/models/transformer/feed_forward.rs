//! `FFN(x) = dropout(max(0, x W_1 + b_1)) W_2 + b_2`, the same for every position.

use heedful_tensor::ops::Activation;
use heedful_tensor::{Params, Tensor};

use super::LayerConfig;
use crate::layers::{Linear, Pass};

/// Two linear layers with an activation between them: parameters `inner` and `outer`.
pub(crate) struct FeedForward {
    inner: Linear,
    outer: Linear,
    activation: Activation,
    dropout: f32,
}

impl FeedForward {
    /// From `d_model` to `d_ff` and back.
    pub(crate) fn new(params: &Params, name: &str, config: &LayerConfig) -> FeedForward {
        FeedForward {
            inner: Linear::new(params, &format!("{name}.inner"), config.d_model, config.d_ff),
            outer: Linear::new(params, &format!("{name}.outer"), config.d_ff, config.d_model),
            activation: config.activation,
            dropout: config.dropout.feed_forward,
        }
    }

    /// The formula above.
    pub(crate) fn forward(&self, x: &Tensor, pass: &mut Pass) -> Tensor {
        let dropout = pass.dropout(self.dropout);
        let hidden = self.inner.activated(x, self.activation, dropout, pass);
        self.outer.forward(&hidden, pass)
    }
}
