//! The families of models: what a model is made of, whichever family it is of, and how it is built from that.

use serde::{Deserialize, Serialize};

use crate::convolution::{Convolutional, ConvolutionalConfig};
use crate::model::Model;
use crate::recurrent::{RecurrentConfig, Seq2Seq};
pub use crate::transformer::ConfigError;
use crate::transformer::{Transformer, TransformerConfig};

/// What a model is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "lowercase")]
pub enum ModelConfig {
    /// An encoder and a decoder of attention.
    Transformer(TransformerConfig),
    /// A recurrent encoder and decoder, with or without attention between them.
    Recurrent(RecurrentConfig),
    /// An encoder and a decoder of gated convolutions, with attention in every decoder layer.
    Convolutional(ConvolutionalConfig),
}

impl ModelConfig {
    /// The name of the family.
    pub fn family(&self) -> &'static str {
        match self {
            ModelConfig::Transformer(_) => "transformer",
            ModelConfig::Recurrent(_) => "recurrent",
            ModelConfig::Convolutional(_) => "convolutional",
        }
    }

    /// Whether this can be built; if not, the error says what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            ModelConfig::Transformer(config) => config.validate(),
            ModelConfig::Recurrent(config) => config.validate(),
            ModelConfig::Convolutional(config) => config.validate(),
        }
    }

    /// A fresh model; `seed` decides its first values.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Model>, ConfigError> {
        Ok(match self {
            ModelConfig::Transformer(config) => Box::new(Transformer::new(config.clone(), seed)?),
            ModelConfig::Recurrent(config) => Box::new(Seq2Seq::new(config.clone(), seed)?),
            ModelConfig::Convolutional(config) => Box::new(Convolutional::new(config.clone(), seed)?),
        })
    }

    /// The model in a few words.
    pub fn summary(&self) -> String {
        match self {
            ModelConfig::Transformer(config) => format!(
                "Transformer of {} + {} layers, d {}, {} heads, ffn {}",
                config.encoder_layers, config.decoder_layers, config.d_model, config.heads, config.d_ff
            ),
            ModelConfig::Recurrent(config) => config.summary(),
            ModelConfig::Convolutional(config) => config.summary(),
        }
    }
}
