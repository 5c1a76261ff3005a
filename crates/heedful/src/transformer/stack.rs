//! One stack of attention layers over one vocabulary: what models are made of that only read, or only go on.

use heedful_tensor::ops::Activation;
use serde::{Deserialize, Serialize};

use super::config::{ActivationName, DropoutRates, TransformerConfig, Tying};
use crate::config::ConfigError;
use crate::layers::{Norm, Positions, Score, ScoreName};

/// The shape and the choices of a single stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackConfig {
    /// Tokens that a text may consist of.
    pub vocabulary: usize,
    /// Width of the vector of a token, between all layers.
    pub d_model: usize,
    /// Width inside the feed-forward layers.
    pub d_ff: usize,
    /// Heads of every attention layer.
    pub heads: usize,
    /// Width of the keys of all heads together; `d_model` if not given.
    pub key_width: Option<usize>,
    /// Width of the values of all heads together; `d_model` if not given.
    pub value_width: Option<usize>,
    /// Depth.
    pub layers: usize,
    /// Where the norms stand.
    pub norm: Norm,
    /// ε of the norms.
    pub norm_epsilon: f32,
    /// In the feed-forward layers.
    #[serde(with = "ActivationName")]
    pub activation: Activation,
    /// How a word's place is told.
    pub positions: Positions,
    /// How a query is compared with a key.
    #[serde(with = "ScoreName")]
    pub score: Score,
    /// A token sees only tokens at this distance or nearer.
    pub window: Option<usize>,
    /// What is dropped in training.
    pub dropout: DropoutRates,
}

impl StackConfig {
    /// The stack that the encoder of `config` is.
    pub fn of_encoder(config: &TransformerConfig) -> StackConfig {
        StackConfig {
            vocabulary: config.source_vocabulary,
            d_model: config.d_model,
            d_ff: config.d_ff,
            heads: config.heads,
            key_width: config.key_width,
            value_width: config.value_width,
            layers: config.encoder_layers,
            norm: config.norm,
            norm_epsilon: config.norm_epsilon,
            activation: config.activation,
            positions: config.positions,
            score: config.score,
            window: config.window,
            dropout: config.dropout,
        }
    }

    /// The stack that the decoder of `config` is, without its attention at a source.
    pub fn of_decoder(config: &TransformerConfig) -> StackConfig {
        StackConfig {
            vocabulary: config.target_vocabulary,
            layers: config.decoder_layers,
            ..StackConfig::of_encoder(config)
        }
    }

    /// Whether this can be built; if not, the error says what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.both_sides().validate()
    }

    /// The longest text that the positions can tell apart; `None` if there is no limit.
    pub fn longest(&self) -> Option<usize> {
        match self.positions {
            Positions::Learned { max_length } => Some(max_length),
            Positions::Sinusoidal | Positions::None => None,
        }
    }

    /// The model in a few words.
    pub fn summary(&self) -> String {
        let StackConfig { layers, d_model, heads, d_ff, .. } = self;
        format!("{layers} layers, d {d_model}, {heads} heads, ffn {d_ff}")
    }

    /// The encoder-decoder whose encoder and decoder both are this stack.
    pub(crate) fn both_sides(&self) -> TransformerConfig {
        TransformerConfig {
            source_vocabulary: self.vocabulary,
            target_vocabulary: self.vocabulary,
            d_model: self.d_model,
            d_ff: self.d_ff,
            heads: self.heads,
            key_width: self.key_width,
            value_width: self.value_width,
            encoder_layers: self.layers,
            decoder_layers: self.layers,
            norm: self.norm,
            norm_epsilon: self.norm_epsilon,
            activation: self.activation,
            positions: self.positions,
            tying: Tying::All,
            score: self.score,
            window: self.window,
            dropout: self.dropout,
            label_smoothing: 0.0,
        }
    }
}
