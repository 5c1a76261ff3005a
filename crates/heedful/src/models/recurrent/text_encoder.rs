//! `states = Stack(√d E[text])`: a recurrent network over texts, for encoder-only models.

use std::ops::Range;

use heedful_tensor::ops::{self, Direction};
use heedful_tensor::{Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

use super::stack::side_by_side;
use super::{Cell, Directions, RecurrentStack, RecurrentStackConfig};
use crate::data::batch::{BatchError, Side, check_side};
use crate::layers::{Embedding, Pass, PositionalEncoding};
use crate::models::Encode;
use crate::models::config::{ConfigError, check};

/// The configuration of a recurrent encoder for texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentEncoderConfig {
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// Dropout rate on the embeddings.
    pub dropout: f32,
    /// The stack on top of the embeddings.
    pub stack: RecurrentStackConfig,
}

/// A recurrent network on embeddings: parameters `embedding.weight` and `encoder.…`.
pub struct RecurrentEncoder {
    config: RecurrentEncoderConfig,
    embedding: Embedding,
    encoder: RecurrentStack,
}

impl RecurrentEncoderConfig {
    /// Whether a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::vocabulary("vocabulary", self.vocabulary)?;
        check::rates(&[("dropout", self.dropout)])?;
        self.stack.validate()
    }

    /// The encoder in a few words.
    pub fn summary(&self) -> String {
        let RecurrentStackConfig { layers, width, .. } = self.stack;
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

impl RecurrentEncoder {
    /// Registers the parameters.
    pub fn new(params: &Params, config: RecurrentEncoderConfig) -> Result<RecurrentEncoder, ConfigError> {
        config.validate()?;
        let table = Embedding::table(params, "embedding", config.vocabulary, config.stack.input);
        Ok(RecurrentEncoder {
            embedding: Embedding::new(table, PositionalEncoding::None, config.dropout),
            encoder: RecurrentStack::new(params, "encoder", &config.stack),
            config,
        })
    }
}

impl Encode for RecurrentEncoder {
    fn width(&self) -> usize {
        self.config.stack.output_width()
    }

    fn longest_text(&self) -> Option<usize> {
        None
    }

    fn check(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        check_side(Side::Source, text, sequences, self.config.vocabulary, None)
    }

    fn encode(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let embedded = self.embedding.forward(text, sequences, pass);
        self.encoder.forward(&embedded, sequences, None, pass).outputs
    }

    /// `[h→_n ; h←_1]`: the state in which each direction has read the whole text.
    fn last(&self, states: &Tensor, sequences: &Ragged) -> Tensor {
        let width = self.config.stack.width;
        let of = |(number, direction): (usize, &Direction)| {
            let last = |range: Range<usize>| match direction {
                Direction::Forward => range.end - 1,
                Direction::Backward => range.start,
            };
            let rows: Vec<usize> = sequences.ranges().map(last).collect();
            ops::columns(&ops::gather_rows(states, &rows), number * width..(number + 1) * width)
        };
        let parts: Vec<Tensor> = self.config.stack.directions.list().iter().enumerate().map(of).collect();
        side_by_side(&parts)
    }
}
