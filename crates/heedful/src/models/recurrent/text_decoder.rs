//! `states = dropout(Stack(√d E[text]))`: a unidirectional recurrent network for decoder-only models. A state
//! depends on all tokens up to its own, and the next token is predicted from it.

use heedful_tensor::ops::{self, Cell, RecurrentState};
use heedful_tensor::{Param, Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

use super::config::CellName;
use super::{Directions, RecurrentStack, RecurrentStackConfig};
use crate::data::batch::{BatchError, Side, check_side};
use crate::layers::{Embedding, Pass, PositionalEncoding};
use crate::models::config::{ConfigError, check};

/// The configuration of a recurrent decoder-only model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentDecoderConfig {
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// The kind of recurrent cell.
    #[serde(with = "CellName")]
    pub cell: Cell,
    /// Width of the token vectors and of the states.
    pub d_model: usize,
    /// Depth.
    pub layers: usize,
    /// ε of a layer norm on every layer's output; `None` for no norm.
    pub norm_epsilon: Option<f32>,
    /// Dropout rate on embeddings, between layers and before the output projection.
    pub dropout: f32,
}

/// Embeddings and a recurrent stack: parameters `embedding.weight` and `decoder.…`.
pub(crate) struct RecurrentTextDecoder {
    config: RecurrentDecoderConfig,
    table: Param,
    embedding: Embedding,
    decoder: RecurrentStack,
}

/// The recurrent state after the tokens read so far: h, and c if the cell has one, of every layer; rows × d
/// each.
pub(crate) type RecurrentStates = Vec<Tensor>;

impl RecurrentDecoderConfig {
    fn stack(&self) -> RecurrentStackConfig {
        RecurrentStackConfig {
            cell: self.cell,
            input: self.d_model,
            width: self.d_model,
            layers: self.layers,
            directions: Directions::Forward,
            norm_epsilon: self.norm_epsilon,
            dropout: self.dropout,
        }
    }

    /// Checks that a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::vocabulary("vocabulary", self.vocabulary)?;
        check::sizes(&[("d_model", self.d_model), ("layers", self.layers)])?;
        self.stack().validate()
    }

    /// A one-line description of the decoder.
    pub fn summary(&self) -> String {
        let cell = match self.cell {
            Cell::Simple => "simple recurrent",
            Cell::Gru => "GRU",
            Cell::Lstm => "LSTM",
        };
        format!("{} {cell} layers, d {}", self.layers, self.d_model)
    }
}

impl RecurrentTextDecoder {
    /// Registers the parameters.
    pub(crate) fn new(
        params: &Params,
        config: RecurrentDecoderConfig,
    ) -> Result<RecurrentTextDecoder, ConfigError> {
        config.validate()?;
        let table = Embedding::table(params, "embedding", config.vocabulary, config.d_model);
        Ok(RecurrentTextDecoder {
            embedding: Embedding::new(table.clone(), PositionalEncoding::None, config.dropout),
            table,
            decoder: RecurrentStack::new(params, "decoder", &config.stack()),
            config,
        })
    }

    /// One vector for each token of the texts, which are concatenated.
    pub(crate) fn forward(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let embedded = self.embedding.forward(text, sequences, pass);
        let outputs = self.decoder.forward(&embedded, sequences, None, pass).outputs;
        ops::dropout(&outputs, pass.dropout(self.config.dropout))
    }

    /// The initial state of this many rows: zeros.
    pub(crate) fn start(&self, rows: usize) -> RecurrentStates {
        let RecurrentDecoderConfig { cell, d_model, layers, .. } = self.config;
        let vectors = layers * if cell.has_memory() { 2 } else { 1 };
        let zeros = vec![0.0; rows * d_model];
        (0..vectors).map(|_| Tensor::from_f32_on(self.table.device(), rows, d_model, &zeros)).collect()
    }

    /// As [`RecurrentTextDecoder::forward`] for the newest token of every row, given the row's state. Returns
    /// the new state too.
    pub(crate) fn step(
        &self,
        newest: &[u32],
        state: &[Tensor],
        pass: &mut Pass,
    ) -> (Tensor, RecurrentStates) {
        let embedded = self.embedding.at(newest, &vec![0; newest.len()], pass);
        let of_layer = state.len() / self.config.layers;
        let layer_state = |parts: &[Tensor]| RecurrentState { h: parts[0].clone(), c: parts.get(1).cloned() };
        let states: Vec<RecurrentState> = state.chunks(of_layer).map(layer_state).collect();
        let output = self.decoder.step(&embedded, &states, pass);
        let state = output.last.into_iter().flat_map(|state| [Some(state.h), state.c]).flatten().collect();
        (output.outputs, state)
    }

    /// Checks that it can read these texts.
    pub(crate) fn check(&self, side: Side, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        check_side(side, text, sequences, self.config.vocabulary, None)
    }

    /// The embedding matrix, which an output projection may share.
    pub(crate) fn table(&self) -> &Param {
        &self.table
    }
}
