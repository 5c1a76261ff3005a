//! `states = Stack(√d E[text])`: a recurrent encoder for encoder-only models.

use std::ops::Range;

use heedful_tensor::ops::{self, Direction};
use heedful_tensor::{Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

use super::stack::concat_directions;
use super::{Cell, Directions, RecurrentStack, RecurrentStackConfig};
use crate::data::batch::{BatchError, Side, check_side};
use crate::layers::{Embedding, Pass, PositionalEncoding};
use crate::models::Encode;
use crate::models::config::{ConfigError, check};

/// The configuration of a recurrent text encoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentEncoderConfig {
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// Dropout rate on the embeddings.
    pub dropout: f32,
    /// The recurrent stack on top of the embeddings.
    pub stack: RecurrentStackConfig,
}

/// Embeddings and a recurrent stack: parameters `embedding.weight` and `encoder.…`.
pub(crate) struct RecurrentEncoder {
    config: RecurrentEncoderConfig,
    embedding: Embedding,
    encoder: RecurrentStack,
}

impl RecurrentEncoderConfig {
    /// Checks that a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::vocabulary("vocabulary", self.vocabulary)?;
        check::rates(&[("dropout", self.dropout)])?;
        self.stack.validate()
    }

    /// A one-line description of the encoder.
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
    pub(crate) fn new(
        params: &Params,
        config: RecurrentEncoderConfig,
    ) -> Result<RecurrentEncoder, ConfigError> {
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
        concat_directions(&parts)
    }
}

#[cfg(test)]
mod tests {
    use heedful_tensor::DType;

    use super::*;
    use crate::models::recurrent::RecurrentConfig;

    /// Lengths of the texts, and their concatenated tokens.
    const LENGTHS: [usize; 3] = [5, 1, 3];
    const TEXT: [u32; 9] = [4, 9, 7, 5, 8, 6, 10, 11, 4];

    fn encoder(cell: Cell, directions: Directions) -> RecurrentEncoder {
        let stack =
            RecurrentStackConfig { cell, directions, layers: 2, ..RecurrentConfig::tiny(12).encoder() };
        let config = RecurrentEncoderConfig { vocabulary: 12, dropout: 0.0, stack };
        RecurrentEncoder::new(&Params::new(3), config).expect("a good configuration")
    }

    fn last_of(encoder: &RecurrentEncoder, text: &[u32], lengths: &[usize]) -> Tensor {
        let sequences = Ragged::from_lengths(lengths.to_vec());
        let states = encoder.encode(text, &sequences, &mut Pass::inference(DType::F32));
        encoder.last(&states, &sequences)
    }

    #[test]
    fn the_last_vector_concatenates_the_final_states_of_each_direction() {
        for cell in [Cell::Simple, Cell::Gru, Cell::Lstm] {
            for directions in [Directions::Forward, Directions::Both] {
                let encoder = encoder(cell, directions);
                let sequences = Ragged::from_lengths(LENGTHS.to_vec());
                let mut pass = Pass::inference(DType::F32);
                let embedded = encoder.embedding.forward(&TEXT, &sequences, &mut pass);
                let ends = encoder.encoder.forward(&embedded, &sequences, None, &mut pass).last;
                let top: Vec<Tensor> = ends[ends.len() / 2..].iter().map(|state| state.h.clone()).collect();
                let found = last_of(&encoder, &TEXT, &LENGTHS);
                assert_eq!(found.to_vec(), concat_directions(&top).to_vec(), "{cell:?}, {directions:?}");
            }
        }
    }

    #[test]
    fn both_halves_of_the_last_vector_depend_on_the_first_and_the_last_token() {
        let encoder = encoder(Cell::Gru, Directions::Both);
        let half = encoder.width() / 2;
        let vector = |text: &[u32]| last_of(&encoder, text, &[text.len()]).to_vec();
        let whole = vector(&[4, 9, 7, 5, 8]);
        for changed in [[10, 9, 7, 5, 8], [4, 9, 7, 5, 10]] {
            let other = vector(&changed);
            assert!(whole[..half] != other[..half] && whole[half..] != other[half..], "{changed:?}");
        }
    }
}
