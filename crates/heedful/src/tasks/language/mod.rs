//! A language model: a decoder without a source, which predicts how a text goes on (Radford et al., 2018).
//!
//! ```text
//! states   = Decoder(√d E[<bos> y_1 … y_m] + PE)      masked self attention and feed-forward, no cross attention
//! p(y_i+1) = softmax(states_i Eᵀ)
//! ```
//!
//! To a search, the source is what stands before: `<bos>` and the prompt.

mod decoding;
mod generator;
mod recipe;
mod validation;

#[cfg(test)]
mod tests;

use heedful_tensor::ops::{self, CrossEntropy};
use heedful_tensor::{DType, Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

pub(crate) use LanguageConfig as Config;
pub use generator::{GenerateError, Generation, Generator};
pub(crate) use recipe::Definition;

use crate::data::batch::{Batch, BatchError, Side};
use crate::layers::Pass;
use crate::models::config::{ConfigError, check};
use crate::models::transformer::{StackConfig, StackMask, TextStack};
use crate::models::{Decoding, Generate, Model};

/// What a language model is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageConfig {
    /// Its layers and its vocabulary.
    pub stack: StackConfig,
    /// Whether its text has ends: a line ends with `<eos>`, running text goes on.
    pub text: TextShape,
    /// Label smoothing: the share of the target's probability that is spread over the other tokens.
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
    decoder: TextStack,
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
        let params = Params::new(seed);
        let decoder = TextStack::new(&params, StackMask::Causal, config.stack.clone())?;
        Ok(LanguageModel { config, params, decoder })
    }

    /// What it is made of.
    pub fn config(&self) -> &LanguageConfig {
        &self.config
    }

    /// Scores of every token at every position of the batch's targets.
    pub fn logits(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        pass.within(|pass| {
            let states = self.states(batch, pass);
            ops::project(&states, self.decoder.table(), pass.compute())
        })
    }

    fn states(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        self.decoder.forward(&batch.target_in, &batch.target_sequences, pass)
    }
}

impl Model for LanguageModel {
    fn params(&self) -> &Params {
        &self.params
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.decoder.check(Side::Target, &batch.target_in, &batch.target_sequences)?;
        self.decoder.check(Side::Target, &batch.target_out, &batch.target_sequences)
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        pass.within(|pass| {
            let states = self.states(batch, pass);
            let smoothing = self.config.label_smoothing;
            ops::cross_entropy(&states, self.decoder.table(), &batch.target_out, smoothing, pass.compute())
        })
    }
}

impl Generate for LanguageModel {
    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        self.decoder.check(Side::Source, source, sequences)
    }

    fn longest_target(&self) -> Option<usize> {
        self.config.stack.positions.longest()
    }

    fn start(&self, compute: DType) -> Box<dyn Decoding + '_> {
        Box::new(decoding::PromptDecoding::new(self, compute))
    }
}
