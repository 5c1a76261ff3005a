//! What can read a text for a classifier.

use heedful_tensor::{Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

use super::readers::{
    ConvolutionalReader, ConvolutionalReaderConfig, RecurrentReader, RecurrentReaderConfig,
};
use crate::data::batch::BatchError;
use crate::layers::Pass;
use crate::models::transformer::{StackConfig, TextEncoder};
use crate::tasks::ConfigError;

/// Texts in, one vector for each token out.
pub trait Encode: Send + Sync {
    /// Width of the vectors.
    fn width(&self) -> usize;

    /// Whether it can read these texts, which are laid end to end.
    fn check(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError>;

    /// One vector for each token: tokens × width.
    fn encode(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor;
}

/// What an encoder is made of, whichever kind it is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum EncoderConfig {
    /// Self attention.
    Transformer(StackConfig),
    /// A recurrent network, in one direction or both.
    Recurrent(RecurrentReaderConfig),
    /// Gated convolutions.
    Convolutional(ConvolutionalReaderConfig),
}

impl EncoderConfig {
    /// Whether this can be built; if not, the error says what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            EncoderConfig::Transformer(config) => config.validate(),
            EncoderConfig::Recurrent(config) => config.validate(),
            EncoderConfig::Convolutional(config) => config.validate(),
        }
    }

    /// Announces the encoder's parameters.
    pub fn build(&self, params: &Params) -> Result<Box<dyn Encode>, ConfigError> {
        Ok(match self {
            EncoderConfig::Transformer(config) => Box::new(TextEncoder::new(params, config.clone())?),
            EncoderConfig::Recurrent(config) => Box::new(RecurrentReader::new(params, config.clone())?),
            EncoderConfig::Convolutional(config) => {
                Box::new(ConvolutionalReader::new(params, config.clone())?)
            }
        })
    }

    /// The encoder in a few words.
    pub fn summary(&self) -> String {
        match self {
            EncoderConfig::Transformer(config) => format!("a Transformer encoder of {}", config.summary()),
            EncoderConfig::Recurrent(config) => config.summary(),
            EncoderConfig::Convolutional(config) => config.summary(),
        }
    }
}

impl Encode for TextEncoder {
    fn width(&self) -> usize {
        self.config().d_model
    }

    fn check(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        self.check(text, sequences)
    }

    fn encode(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        self.encode(text, sequences, pass)
    }
}
