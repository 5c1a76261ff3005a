//! `states = dropout(Stack(√d E[text]))`: a recurrent network that reads forward, for decoder-only models. A state sums up all
//! tokens up to its own, so the next token can be predicted from it.

use heedful_tensor::ops::{self, Cell, RecurrentState};
use heedful_tensor::{Param, Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

use super::config::CellName;
use super::{Directions, RecurrentStack, RecurrentStackConfig};
use crate::data::batch::{BatchError, Side, check_side};
use crate::layers::{Embedding, Pass, PositionalEncoding};
use crate::models::config::{ConfigError, check};

/// The configuration of a recurrent decoder without a source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentDecoderConfig {
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// The kind of recurrent cell.
    #[serde(with = "CellName")]
    pub cell: Cell,
    /// Width of the vector of a token, and of a state.
    pub d_model: usize,
    /// Depth.
    pub layers: usize,
    /// ε of a layer norm over every layer's output; no norm if not given.
    pub norm_epsilon: Option<f32>,
    /// Dropout rate on embeddings, between layers and before the output projection.
    pub dropout: f32,
}

/// A recurrent network on embeddings: parameters `embedding.weight` and `decoder.…`.
pub(crate) struct RecurrentTextDecoder {
    config: RecurrentDecoderConfig,
    table: Param,
    embedding: Embedding,
    decoder: RecurrentStack,
}

/// What a decoder remembers of the tokens that it has read: h, and c if the cell has one, of every layer; rows × d each.
pub(crate) type RecurrentPast = Vec<Tensor>;

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

    /// Whether a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::vocabulary("vocabulary", self.vocabulary)?;
        check::sizes(&[("d_model", self.d_model), ("layers", self.layers)])?;
        self.stack().validate()
    }

    /// The decoder in a few words.
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

    /// One vector for each token of the texts, which are laid end to end.
    pub(crate) fn forward(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let embedded = self.embedding.forward(text, sequences, pass);
        let outputs = self.decoder.forward(&embedded, sequences, None, pass).outputs;
        ops::dropout(&outputs, pass.dropout(self.config.dropout))
    }

    /// The past of texts of which nothing is read.
    pub(crate) fn start(&self, rows: usize) -> RecurrentPast {
        let RecurrentDecoderConfig { cell, d_model, layers, .. } = self.config;
        let vectors = layers * if cell.has_memory() { 2 } else { 1 };
        let zeros = vec![0.0; rows * d_model];
        (0..vectors).map(|_| Tensor::from_f32_on(self.table.device(), rows, d_model, &zeros)).collect()
    }

    /// As [`RecurrentTextDecoder::forward`] for the newest token of every row, given what its row remembers; and what it remembers
    /// then.
    pub(crate) fn step(&self, newest: &[u32], past: &[Tensor], pass: &mut Pass) -> (Tensor, RecurrentPast) {
        let embedded = self.embedding.at(newest, &vec![0; newest.len()], pass);
        let of_layer = past.len() / self.config.layers;
        let state = |parts: &[Tensor]| RecurrentState { h: parts[0].clone(), c: parts.get(1).cloned() };
        let states: Vec<RecurrentState> = past.chunks(of_layer).map(state).collect();
        let found = self.decoder.step(&embedded, &states, pass);
        let past = found.last.into_iter().flat_map(|state| [Some(state.h), state.c]).flatten().collect();
        (found.outputs, past)
    }

    /// Whether it can read these texts.
    pub(crate) fn check(&self, side: Side, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        check_side(side, text, sequences, self.config.vocabulary, None)
    }

    /// The table of token vectors, which an output projection may share.
    pub(crate) fn table(&self) -> &Param {
        &self.table
    }
}
