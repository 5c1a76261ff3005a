//! The configuration of an encoder-only or decoder-only model: one stack, one vocabulary.

use heedful_tensor::ops::Activation;
use heedful_tensor::{Param, Params};
use serde::{Deserialize, Serialize};

use super::layer::{ActivationName, DropoutRates, LayerConfig};
use super::stack::normalization;
use crate::data::SpecialTokens;
use crate::layers::{AttentionScore, Embedding, Norm, NormKind, PositionalEncoding, Positions, ScoreName};
use crate::models::config::{ConfigError, check};

/// The configuration of a single stack with its vocabulary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackConfig {
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// The special tokens of its vocabulary.
    #[serde(default, skip_serializing_if = "SpecialTokens::are_default")]
    pub special: SpecialTokens,
    /// Width of the token vectors between blocks.
    pub d_model: usize,
    /// Width inside the feed-forward layers.
    pub d_ff: usize,
    /// Number of heads of every attention layer.
    pub heads: usize,
    /// Width of the keys of all heads together; `d_model` if not given.
    pub key_width: Option<usize>,
    /// Width of the values of all heads together; `d_model` if not given.
    pub value_width: Option<usize>,
    /// Depth.
    pub layers: usize,
    /// Pre-norm or post-norm.
    pub norm: Norm,
    /// Layer norm or batch norm.
    #[serde(default, skip_serializing_if = "NormKind::is_layer")]
    pub norm_kind: NormKind,
    /// ε of the layer norms.
    pub norm_epsilon: f32,
    /// Activation of the feed-forward layers.
    #[serde(with = "ActivationName")]
    pub activation: Activation,
    /// How positions are encoded.
    pub positions: Positions,
    /// Whether token vectors are multiplied by √d_model before positions are added.
    #[serde(default = "scaled", skip_serializing_if = "is_scaled")]
    pub scale_embeddings: bool,
    /// Whether a norm follows the sum of token and position vectors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub embedding_norm: bool,
    /// The score of a query and a key.
    #[serde(with = "ScoreName")]
    pub score: AttentionScore,
    /// Sliding-window self attention: a token attends only to tokens at this distance or nearer.
    pub window: Option<usize>,
    /// Dropout rates in training.
    pub dropout: DropoutRates,
}

impl StackConfig {
    /// The configuration of its blocks.
    pub fn layer(&self) -> LayerConfig {
        LayerConfig {
            d_model: self.d_model,
            d_ff: self.d_ff,
            heads: self.heads,
            key_width: self.key_width,
            value_width: self.value_width,
            norm: self.norm,
            norm_kind: self.norm_kind,
            norm_epsilon: self.norm_epsilon,
            activation: self.activation,
            score: self.score,
            window: self.window,
            dropout: self.dropout,
        }
    }

    /// The embedding layer over an embedding matrix and positions; its optional norm has the parameters
    /// `<name>_norm.…`.
    pub(super) fn embedding(
        &self,
        params: &Params,
        name: &str,
        table: Param,
        position: PositionalEncoding,
    ) -> Embedding {
        let mut embedding = Embedding::new(table, position, self.dropout.residual);
        if !self.scale_embeddings {
            embedding = embedding.unscaled();
        }
        if self.embedding_norm {
            embedding = embedding.with_norm(normalization(params, &format!("{name}_norm"), &self.layer()));
        }
        embedding
    }

    /// Checks that a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.layer().validate()?;
        check::sizes(&[("layers", self.layers)])?;
        check::positions(self.positions, self.d_model)?;
        check::vocabulary("vocabulary", self.vocabulary)?;
        check::special_tokens(&self.special, [self.vocabulary; 2])
    }

    /// A one-line description of the stack.
    pub fn summary(&self) -> String {
        let StackConfig { layers, d_model, heads, d_ff, .. } = self;
        format!("{layers} layers, d {d_model}, {heads} heads, ffn {d_ff}")
    }
}

/// The default of configurations that were saved without `scale_embeddings`.
pub(super) fn scaled() -> bool {
    true
}

pub(super) fn is_scaled(scale_embeddings: &bool) -> bool {
    *scale_embeddings == scaled()
}
