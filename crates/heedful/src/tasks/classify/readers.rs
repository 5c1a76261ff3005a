//! Encoders of other families that can read for a classifier: `h = Encoder(√d E[text] (+ PE))`.

use heedful_tensor::{Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

use super::Encode;
use crate::data::batch::{BatchError, check_side};
use crate::layers::{Embedding, Pass, Position, Positions};
use crate::models::config::{ConfigError, check};
use crate::models::convolution::{ConvolutionalEncoder, EncoderShape};
use crate::models::recurrent::{self, Cell, Directions, RecurrentStack};

/// What a recurrent reader is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentReaderConfig {
    /// Tokens that a text may consist of.
    pub vocabulary: usize,
    /// On the embeddings.
    pub dropout: f32,
    /// The network over them.
    pub stack: recurrent::StackConfig,
}

/// What a convolutional reader is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalReaderConfig {
    /// Tokens that a text may consist of.
    pub vocabulary: usize,
    /// How a word's place is told.
    pub positions: Positions,
    /// On the embeddings.
    pub dropout: f32,
    /// The network over them.
    pub shape: EncoderShape,
}

/// A recurrent network over embeddings: parameters `embedding.weight` and `encoder.…`.
pub struct RecurrentReader {
    config: RecurrentReaderConfig,
    embedding: Embedding,
    encoder: RecurrentStack,
}

/// Gated convolutions over embeddings: parameters `embedding.weight`, `position.weight` (if learned) and `encoder.…`.
pub struct ConvolutionalReader {
    config: ConvolutionalReaderConfig,
    embedding: Embedding,
    encoder: ConvolutionalEncoder,
}

impl RecurrentReaderConfig {
    /// Whether this can be built; if not, the error says what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::vocabulary("vocabulary", self.vocabulary)?;
        check::rates(&[("dropout", self.dropout)])?;
        self.stack.validate()
    }

    pub(super) fn summary(&self) -> String {
        let recurrent::StackConfig { layers, width, .. } = self.stack;
        let cell = match self.stack.cell {
            Cell::Simple => "simple recurrent network",
            Cell::Gru => "GRU",
            Cell::Lstm => "LSTM",
        };
        let directions = match self.stack.directions {
            Directions::Forward => "forward",
            Directions::Both => "bidirectional",
        };
        format!("a {directions} {cell} of {layers} layers, width {width}")
    }
}

impl ConvolutionalReaderConfig {
    /// Whether this can be built; if not, the error says what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::vocabulary("vocabulary", self.vocabulary)?;
        let EncoderShape { d_model, layers, taps, norm_epsilon, dropout, .. } = self.shape;
        check::sizes(&[("d_model", d_model), ("layers", layers), ("taps", taps)])?;
        check::odd_taps("taps", taps)?;
        check::epsilon(norm_epsilon)?;
        check::rates(&[("dropout", self.dropout), ("shape.dropout", dropout)])?;
        check::positions(self.positions, d_model)
    }

    pub(super) fn summary(&self) -> String {
        let EncoderShape { layers, d_model, taps, .. } = self.shape;
        format!("{layers} gated convolutions of {taps} taps, d {d_model}")
    }
}

impl RecurrentReader {
    /// Announces the parameters.
    pub fn new(params: &Params, config: RecurrentReaderConfig) -> Result<RecurrentReader, ConfigError> {
        config.validate()?;
        let table = Embedding::table(params, "embedding", config.vocabulary, config.stack.input);
        Ok(RecurrentReader {
            embedding: Embedding::new(table, Position::None, config.dropout),
            encoder: RecurrentStack::new(params, "encoder", &config.stack),
            config,
        })
    }
}

impl ConvolutionalReader {
    /// Announces the parameters.
    pub fn new(
        params: &Params,
        config: ConvolutionalReaderConfig,
    ) -> Result<ConvolutionalReader, ConfigError> {
        config.validate()?;
        let d = config.shape.d_model;
        let table = Embedding::table(params, "embedding", config.vocabulary, d);
        let position = Position::new(params, "position", config.positions, d);
        Ok(ConvolutionalReader {
            embedding: Embedding::new(table, position, config.dropout),
            encoder: ConvolutionalEncoder::new(params, "encoder", config.shape),
            config,
        })
    }
}

impl Encode for RecurrentReader {
    fn width(&self) -> usize {
        self.config.stack.output_width()
    }

    fn check(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        check_side("source", text, sequences, self.config.vocabulary, None)
    }

    fn encode(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let embedded = self.embedding.forward(text, sequences, pass);
        self.encoder.forward(&embedded, sequences, None, pass).outputs
    }
}

impl Encode for ConvolutionalReader {
    fn width(&self) -> usize {
        self.config.shape.d_model
    }

    fn check(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        let longest = match self.config.positions {
            Positions::Learned { max_length } => Some(max_length),
            Positions::Sinusoidal | Positions::None => None,
        };
        check_side("source", text, sequences, self.config.vocabulary, longest)
    }

    fn encode(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let embedded = self.embedding.forward(text, sequences, pass);
        self.encoder.forward(embedded, sequences, pass)
    }
}
