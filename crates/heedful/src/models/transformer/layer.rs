//! The configuration of a Transformer block.

use heedful_tensor::ops::Activation;
use serde::{Deserialize, Serialize};

use crate::layers::{AttentionScore, Norm, NormKind};
use crate::models::config::{ConfigError, check};

/// The configuration of one block, derived from a [`TransformerConfig`](super::TransformerConfig) or a
/// [`StackConfig`](super::StackConfig).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LayerConfig {
    /// Width of the token vectors.
    pub d_model: usize,
    /// Width inside the feed-forward layer.
    pub d_ff: usize,
    /// Number of heads of every attention layer.
    pub heads: usize,
    /// Width of the keys of all heads together, h · d_k; `d_model` if not given.
    pub key_width: Option<usize>,
    /// Width of the values of all heads together, h · d_v; `d_model` if not given.
    pub value_width: Option<usize>,
    /// Pre-norm or post-norm.
    pub norm: Norm,
    /// Layer norm or batch norm.
    pub norm_kind: NormKind,
    /// ε of the layer norms.
    pub norm_epsilon: f32,
    /// Activation of the feed-forward layer.
    pub activation: Activation,
    /// The score of a query and a key.
    pub score: AttentionScore,
    /// Sliding-window self attention: a token attends only to tokens at this distance or nearer.
    pub window: Option<usize>,
    /// Dropout rates in training.
    pub dropout: DropoutRates,
}

/// Dropout rates; 0 for no dropout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropoutRates {
    /// On every sublayer's output and on the embeddings.
    pub residual: f32,
    /// On the attention weights.
    pub attention: f32,
    /// Inside the feed-forward layers.
    pub feed_forward: f32,
}

/// The names of the activations in `config.json`; the type itself is in the tensor crate.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Activation", rename_all = "lowercase")]
pub(super) enum ActivationName {
    Identity,
    Relu,
    Gelu,
    #[serde(rename = "gelu-tanh")]
    GeluTanh,
    Silu,
}

impl LayerConfig {
    /// h · d_k.
    pub fn key_width(&self) -> usize {
        self.key_width.unwrap_or(self.d_model)
    }

    /// h · d_v.
    pub fn value_width(&self) -> usize {
        self.value_width.unwrap_or(self.d_model)
    }

    /// Checks that a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::sizes(&[
            ("d_model", self.d_model),
            ("d_ff", self.d_ff),
            ("heads", self.heads),
            ("key_width", self.key_width()),
            ("value_width", self.value_width()),
        ])?;
        let key_name = if self.key_width.is_some() { "key_width" } else { "d_model" };
        let value_name = if self.value_width.is_some() { "value_width" } else { "d_model" };
        for (what, width) in [(key_name, self.key_width()), (value_name, self.value_width())] {
            if !width.is_multiple_of(self.heads) {
                return Err(ConfigError::HeadsDoNotDivide { heads: self.heads, what, width });
            }
        }
        check::score_of_heads(self.score)?;
        check::rates(&[
            ("dropout.residual", self.dropout.residual),
            ("dropout.attention", self.dropout.attention),
            ("dropout.feed_forward", self.dropout.feed_forward),
        ])?;
        check::epsilon(self.norm_epsilon)
    }
}
