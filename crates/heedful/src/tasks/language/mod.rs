//! A language model: a decoder without a source, which says how a text goes on (Radford et al., 2018).
//!
//! ```text
//! states   = Decoder(√d E[<bos> y_1 … y_m] + PE)      masked self attention and feed-forward, no cross attention
//! p(y_i+1) = softmax(states_i Eᵀ)
//! ```
//!
//! To a search, the source is what was said before: `<bos>` and the prompt.

mod generator;
mod incremental;

#[cfg(test)]
mod tests;

use heedful_tensor::ops::{self, CrossEntropy};
use heedful_tensor::{DType, Param, Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

pub use generator::{GenerateError, Generation, Generator};

use crate::data::batch::{Batch, BatchError, check_side};
use crate::layers::{Embedding, Pass, Position};
use crate::models::config::{ConfigError, check};
use crate::models::transformer::{Encoder, Sight, StackConfig};
use crate::models::{Decoding, Model};

/// What a language model is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageConfig {
    /// Its layers and its vocabulary.
    pub stack: StackConfig,
    /// Whether its text has ends: a line ends with `<eos>`, running text goes on.
    pub text: TextShape,
    /// Probability that the training goal spreads over the wrong tokens.
    pub label_smoothing: f32,
}

/// What a language model was trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextShape {
    /// Lines, each a text of its own.
    Lines,
    /// One long text, line ends included, in pieces.
    Running,
}

/// A decoder-only model with its parameters `embedding.weight`, `position.weight` (if learned) and `decoder.…`.
pub struct LanguageModel {
    config: LanguageConfig,
    params: Params,
    table: Param,
    embedding: Embedding,
    decoder: Encoder,
}

impl LanguageConfig {
    /// Whether this can be built; if not, the error says what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.stack.validate()?;
        check::rates(&[("label_smoothing", self.label_smoothing)])
    }
}

impl LanguageModel {
    /// A fresh model; `seed` decides its first values.
    pub fn new(config: LanguageConfig, seed: u64) -> Result<LanguageModel, ConfigError> {
        config.validate()?;
        let (params, stack) = (Params::new(seed), &config.stack);
        let table = Embedding::table(&params, "embedding", stack.vocabulary, stack.d_model);
        let position = Position::new(&params, "position", stack.positions, stack.d_model);
        Ok(LanguageModel {
            embedding: Embedding::new(table.clone(), position, stack.dropout.residual),
            table,
            decoder: Encoder::seeing(Sight::Past, &params, &stack.both_sides()),
            params,
            config,
        })
    }

    /// What it is made of.
    pub fn config(&self) -> &LanguageConfig {
        &self.config
    }

    /// Scores of every token at every position of the batch's targets.
    pub fn logits(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        pass.within(|pass| {
            let states = self.states(batch, pass);
            ops::project(&states, &self.table, pass.compute())
        })
    }

    fn states(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        let embedded = self.embedding.forward(&batch.target_in, &batch.target_sequences, pass);
        self.decoder.forward(embedded, &batch.target_sequences, pass)
    }

    fn check_side(&self, side: &'static str, ids: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        let StackConfig { vocabulary, .. } = self.config.stack;
        check_side(side, ids, sequences, vocabulary, self.config.stack.longest())
    }
}

impl Model for LanguageModel {
    fn params(&self) -> &Params {
        &self.params
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.check_side("target", &batch.target_in, &batch.target_sequences)?;
        self.check_side("target", &batch.target_out, &batch.target_sequences)
    }

    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        self.check_side("source", source, sequences)
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        pass.within(|pass| {
            let states = self.states(batch, pass);
            let smoothing = self.config.label_smoothing;
            ops::cross_entropy(&states, &self.table, &batch.target_out, smoothing, pass.compute())
        })
    }

    fn longest_target(&self) -> Option<usize> {
        self.config.stack.longest()
    }

    fn start(&self, compute: DType) -> Box<dyn Decoding + '_> {
        Box::new(incremental::Continuing::new(self, compute))
    }
}
