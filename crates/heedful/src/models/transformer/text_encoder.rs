//! `states = Encoder(√d E[text] + PE)`: a text as one vector for each of its tokens, for models that only read.

use heedful_tensor::{Param, Params, Ragged, Tensor};

use super::{ConfigError, Encoder, StackConfig};
use crate::data::batch::{BatchError, check_side};
use crate::layers::{Embedding, Pass, Position};

/// Embedding and encoder: parameters `embedding.weight`, `position.weight` (if learned) and `encoder.…`.
pub struct TextEncoder {
    config: StackConfig,
    table: Param,
    embedding: Embedding,
    encoder: Encoder,
}

impl TextEncoder {
    /// Announces the parameters.
    pub fn new(params: &Params, config: StackConfig) -> Result<TextEncoder, ConfigError> {
        config.validate()?;
        let table = Embedding::table(params, "embedding", config.vocabulary, config.d_model);
        let position = Position::new(params, "position", config.positions, config.d_model);
        Ok(TextEncoder {
            embedding: Embedding::new(table.clone(), position, config.dropout.residual),
            table,
            encoder: Encoder::new(params, &config.both_sides()),
            config,
        })
    }

    /// One vector for each token of the texts, which are laid end to end.
    pub fn encode(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let embedded = self.embedding.forward(text, sequences, pass);
        self.encoder.forward(embedded, sequences, pass)
    }

    /// Whether it can read these texts.
    pub fn check(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        check_side("source", text, sequences, self.config.vocabulary, self.config.longest())
    }

    /// What it is made of.
    pub fn config(&self) -> &StackConfig {
        &self.config
    }

    /// The table of token vectors, which an output projection may share.
    pub fn table(&self) -> &Param {
        &self.table
    }
}
