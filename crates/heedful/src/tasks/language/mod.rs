//! A language model: a decoder that predicts the next token of a text, either with causal self attention
//! (Radford et al., 2018) or as a recurrent network (Mikolov et al., 2010).
//!
//! ```text
//! states   = Decoder(√d E[<bos> y_1 … y_m] + PE)      causal self attention and feed-forward, no cross attention
//!          = RNN(√d E[<bos> y_1 … y_m])               the recurrent family
//! p(y_i+1) = softmax(states_i Eᵀ + b)                b only with an output bias
//! ```
//!
//! In a search, the source is `<bos>` followed by the prompt.

mod config;

mod decoding;
mod recurrent_decoding;

mod generator;
mod recipe;
mod scoring;
mod validation;

#[cfg(test)]
mod tests;

use heedful_tensor::ops::{self, CrossEntropy};
use heedful_tensor::{Param, Params, Precision, Ragged, Tensor};

pub(crate) use LanguageConfig as Config;
pub use config::LanguageStack;
pub use config::{LanguageConfig, TextShape};
pub use generator::{Generation, Generator};
pub(crate) use recipe::Definition;
pub use scoring::{TextPerplexity, TextScorer};

use crate::data::SpecialTokens;
use crate::data::batch::{Batch, BatchError, Side};
use crate::layers::{OutputProjection, Pass, StackSide};
use crate::models::config::ConfigError;
use crate::models::recurrent::RecurrentTextDecoder;
use crate::models::transformer::{StackMask, TextStack};
use crate::models::{Decoding, Generate, Inspect, Model};

/// A decoder-only model with its parameters `embedding.weight`, `position.weight` (if learned) and
/// `decoder.…`.
pub struct LanguageModel {
    config: LanguageConfig,
    params: Params,
    decoder: Decoder,
    output: OutputProjection,
}

#[allow(clippy::large_enum_variant, reason = "a model has only one")]
enum Decoder {
    Transformer(TextStack),
    Recurrent(RecurrentTextDecoder),
}

impl LanguageModel {
    /// Builds a new model; `seed` determines its initial parameters.
    pub fn new(config: LanguageConfig, seed: u64) -> Result<LanguageModel, ConfigError> {
        config.validate()?;
        let params = Params::new(seed);
        let decoder = match config.stack.clone() {
            LanguageStack::Transformer(stack) => {
                Decoder::Transformer(TextStack::new(&params, StackMask::Causal, stack)?)
            }
            LanguageStack::Recurrent(stack) => Decoder::Recurrent(RecurrentTextDecoder::new(&params, stack)?),
        };
        let output = OutputProjection::new(&params, decoder.table().clone(), config.output_bias);
        Ok(LanguageModel { config, params, decoder, output })
    }

    /// The configuration.
    pub fn config(&self) -> &LanguageConfig {
        &self.config
    }

    /// The logits of all tokens at every target position of the batch.
    pub fn logits(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        pass.within(|pass| {
            let states = self.states(batch, pass);
            self.output.logits(&states, pass)
        })
    }

    fn states(&self, batch: &Batch, pass: &mut Pass) -> Tensor {
        let (text, sequences) = (&batch.target_in, &batch.target_sequences);
        match &self.decoder {
            Decoder::Transformer(decoder) => decoder.forward(text, sequences, pass),
            Decoder::Recurrent(decoder) => decoder.forward(text, sequences, pass),
        }
    }
}

impl Decoder {
    /// The embedding table, which is tied to the output projection.
    fn table(&self) -> &Param {
        match self {
            Decoder::Transformer(decoder) => decoder.table(),
            Decoder::Recurrent(decoder) => decoder.table(),
        }
    }

    fn check(&self, side: Side, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        match self {
            Decoder::Transformer(decoder) => decoder.check(side, text, sequences),
            Decoder::Recurrent(decoder) => decoder.check(side, text, sequences),
        }
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

    fn special_tokens(&self) -> SpecialTokens {
        self.config.special_tokens()
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        pass.within(|pass| {
            let states = self.states(batch, pass);
            let smoothing = self.config.label_smoothing;
            self.output.loss(&states, &batch.target_out, smoothing, pass)
        })
    }
}

impl Generate for LanguageModel {
    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        self.decoder.check(Side::Source, source, sequences)
    }

    fn longest_target(&self) -> Option<usize> {
        self.config.longest()
    }

    fn as_inspect(&self) -> Option<&dyn Inspect> {
        match &self.decoder {
            Decoder::Transformer(_) => Some(self),
            Decoder::Recurrent(_) => None,
        }
    }

    fn start(&self, compute: Precision) -> Box<dyn Decoding + '_> {
        match &self.decoder {
            Decoder::Transformer(decoder) => Box::new(decoding::PromptDecoding::new(self, decoder, compute)),
            Decoder::Recurrent(decoder) => {
                Box::new(recurrent_decoding::RecurrentPromptDecoding::new(self, decoder, compute))
            }
        }
    }
}

impl Inspect for LanguageModel {
    fn stacks(&self) -> Vec<(StackSide, usize)> {
        match &self.decoder {
            Decoder::Transformer(decoder) => vec![(StackSide::Decoder, decoder.config().layers)],
            Decoder::Recurrent(_) => Vec::new(),
        }
    }

    fn logits_at(&self, batch: &Batch, predictions: &[usize], pass: &mut Pass) -> Tensor {
        pass.within(|pass| {
            let states = self.states(batch, pass);
            self.output.inspected(&ops::gather_rows(&states, predictions), pass)
        })
    }
}
