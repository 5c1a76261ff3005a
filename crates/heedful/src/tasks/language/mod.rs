//! A language model: a decoder that predicts the next token of a text (Radford et al., 2018).
//!
//! ```text
//! states   = Decoder(√d E[<bos> y_1 … y_m] + PE)      causal self attention and feed-forward, no cross attention
//! p(y_i+1) = softmax(states_i Eᵀ)
//! ```
//!
//! To a search, the source is `<bos>` and the prompt.

mod decoding;
mod generator;
mod recipe;
mod scoring;
mod validation;

#[cfg(test)]
mod tests;

use heedful_tensor::ops::{self, CrossEntropy};
use heedful_tensor::{Params, Precision, Ragged, Tensor};
use serde::{Deserialize, Serialize};

pub(crate) use LanguageConfig as Config;
pub use generator::{GenerateError, Generation, Generator};
pub(crate) use recipe::Definition;
pub use scoring::{TextPerplexity, TextScorer};

use crate::data::batch::{Batch, BatchError, Side};
use crate::layers::Pass;
use crate::models::config::{ConfigError, check};
use crate::models::transformer::{StackConfig, StackMask, TextStack};
use crate::models::{Decoding, Generate, Model};

/// The configuration of a language model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LanguageConfig {
    /// The stack and its vocabulary.
    pub stack: StackConfig,
    /// Whether it was trained on lines, which end with `<eos>`, or on running text.
    pub text: TextShape,
    /// Label smoothing: the share of the target's probability that is spread over the other tokens.
    pub label_smoothing: f32,
}

/// The kind of text that a language model was trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextShape {
    /// Lines, each a text of its own.
    Lines,
    /// One long text, line ends included, cut into blocks.
    Running,
}

/// A decoder-only model with its parameters `embedding.weight`, `position.weight` (if learned) and `decoder.…`.
pub struct LanguageModel {
    config: LanguageConfig,
    params: Params,
    decoder: TextStack,
}

impl LanguageConfig {
    /// Whether a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.stack.validate()?;
        check::rates(&[("label_smoothing", self.label_smoothing)])
    }
}

impl LanguageModel {
    /// A new model; `seed` determines its initial parameters.
    pub fn new(config: LanguageConfig, seed: u64) -> Result<LanguageModel, ConfigError> {
        config.validate()?;
        let params = Params::new(seed);
        let decoder = TextStack::new(&params, StackMask::Causal, config.stack.clone())?;
        Ok(LanguageModel { config, params, decoder })
    }

    /// Its configuration.
    pub fn config(&self) -> &LanguageConfig {
        &self.config
    }

    /// Logits of every token at every position of the batch's targets.
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
            ops::cross_entropy(&states, self.decoder.table(), &batch.target_out, pass.loss_options(smoothing))
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

    fn start(&self, compute: Precision) -> Box<dyn Decoding + '_> {
        Box::new(decoding::PromptDecoding::new(self, compute))
    }
}
