//! `states = Encoder(√d E[text] + PE)`: a convolutional encoder for encoder-only models.

use heedful_tensor::{Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

use super::config::describe_dilation;
use super::{ConvolutionalEncoder, ConvolutionalEncoderConfig};
use crate::data::batch::{BatchError, Side, check_side};
use crate::layers::{Embedding, Pass, PositionalEncoding, Positions};
use crate::models::Encode;
use crate::models::config::{ConfigError, check};

/// The configuration of a convolutional text encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalTextEncoderConfig {
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// How positions are encoded.
    pub positions: Positions,
    /// Dropout rate on the embeddings.
    pub dropout: f32,
    /// The convolutions on top of the embeddings.
    pub stack: ConvolutionalEncoderConfig,
}

/// Embeddings and convolutions: parameters `embedding.weight`, `position.weight` (if learned) and
/// `encoder.…`.
pub(crate) struct ConvolutionalTextEncoder {
    config: ConvolutionalTextEncoderConfig,
    embedding: Embedding,
    encoder: ConvolutionalEncoder,
}

impl ConvolutionalTextEncoderConfig {
    /// Checks that a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::vocabulary("vocabulary", self.vocabulary)?;
        check::rates(&[("dropout", self.dropout)])?;
        self.stack.validate()?;
        check::positions(self.positions, self.stack.d_model)
    }

    /// A one-line description of the encoder.
    pub fn summary(&self) -> String {
        let ConvolutionalEncoderConfig { layers, d_model, taps, dilation, kind, .. } = self.stack;
        format!("{layers} {kind} convolutions, kernel {taps}{}, d {d_model}", describe_dilation(dilation))
    }
}

impl ConvolutionalTextEncoder {
    /// Registers the parameters.
    pub(crate) fn new(
        params: &Params,
        config: ConvolutionalTextEncoderConfig,
    ) -> Result<ConvolutionalTextEncoder, ConfigError> {
        config.validate()?;
        let d = config.stack.d_model;
        let table = Embedding::table(params, "embedding", config.vocabulary, d);
        let position = PositionalEncoding::new(params, "position", config.positions, d);
        Ok(ConvolutionalTextEncoder {
            embedding: Embedding::new(table, position, config.dropout),
            encoder: ConvolutionalEncoder::new(params, "encoder", config.stack),
            config,
        })
    }
}

impl Encode for ConvolutionalTextEncoder {
    fn width(&self) -> usize {
        self.config.stack.d_model
    }

    fn longest_text(&self) -> Option<usize> {
        self.config.positions.longest()
    }

    fn check(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        check_side(Side::Source, text, sequences, self.config.vocabulary, self.config.positions.longest())
    }

    fn encode(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let embedded = self.embedding.forward(text, sequences, pass);
        self.encoder.forward(embedded, sequences, pass)
    }
}
