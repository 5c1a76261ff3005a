//! A masked language model: an encoder that predicts the masked tokens of a text (Devlin et al., 2019).
//!
//! ```text
//! x'  = x with 15 % of its tokens masked                       see `masking`
//! h   = Encoder(x')
//! p_i = softmax(Norm(gelu(h_i W + b)) Eᵀ + b_out)         at the masked positions only; b_out with an output bias
//! ```
//!
//! Classifiers can be initialized with its encoder.

mod filler;
mod masking;
mod recipe;
mod validation;

#[cfg(test)]
mod tests;

use heedful_tensor::ops::{self, Activation, CrossEntropy};
use heedful_tensor::random::Dropout;
use heedful_tensor::{DType, Params, Ragged, Tensor};
use serde::{Deserialize, Serialize};

pub(crate) use MaskedConfig as Config;
pub use filler::{Filled, Filler, Guess};
pub(crate) use masking::masked_tokens;
pub use masking::{MaskedText, Masking};
pub(crate) use recipe::Definition;

use crate::data::SpecialTokens;
use crate::data::batch::{Batch, BatchError, Side};
use crate::layers::{Linear, Normalization, OutputProjection, Pass, StackSide};
use crate::models::config::{ConfigError, check};
use crate::models::transformer::{StackConfig, StackMask, TextStack};
use crate::models::{Inspect, Model};

/// The configuration of a masked language model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskedConfig {
    /// The stack and its vocabulary.
    pub stack: StackConfig,
    /// Label smoothing: the share of the target's probability that is spread over the other tokens.
    pub label_smoothing: f32,
    /// Whether the output projection has a bias.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_bias: bool,
}

/// An encoder-only model: parameters of the [`TextStack`], `head.weight`, `head.bias` and `head_norm.…`.
pub struct MaskedModel {
    config: MaskedConfig,
    params: Params,
    encoder: TextStack,
    head: Linear,
    head_norm: Normalization,
    output: OutputProjection,
}

impl MaskedConfig {
    /// Checks that a model can be built; the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.stack.validate()?;
        check::rates(&[("label_smoothing", self.label_smoothing)])
    }
}

impl MaskedModel {
    /// Builds a new model; `seed` determines its initial parameters.
    pub fn new(config: MaskedConfig, seed: u64) -> Result<MaskedModel, ConfigError> {
        config.validate()?;
        let params = Params::new(seed);
        let encoder = TextStack::new(&params, StackMask::Bidirectional, config.stack.clone())?;
        let StackConfig { d_model: d, norm_kind, norm_epsilon, .. } = config.stack;
        let table = encoder.table().clone();
        Ok(MaskedModel {
            encoder,
            head: Linear::new(&params, "head", d, d),
            head_norm: Normalization::new(&params, "head_norm", norm_kind, d, norm_epsilon),
            output: OutputProjection::new(&params, table, config.output_bias),
            params,
            config,
        })
    }

    /// The configuration.
    pub fn config(&self) -> &MaskedConfig {
        &self.config
    }

    /// Maximum number of tokens of a text; `None` for no limit.
    pub(crate) fn longest_text(&self) -> Option<usize> {
        let StackConfig { positions, special, .. } = &self.config.stack;
        positions.longest().map(|longest| longest.saturating_sub(special.around_text()))
    }

    /// Checks that the model can read these concatenated texts.
    pub fn check_text(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        let (text, sequences) = self.config.stack.special.surround(text, sequences);
        self.encoder.check(Side::Source, &text, &sequences)
    }

    /// The cross entropy of the masked tokens.
    pub fn loss_of(&self, masked: &MaskedText, sequences: &Ragged, pass: &mut Pass) -> CrossEntropy {
        pass.within(|pass| {
            let predicting = self.head_states(&masked.text, sequences, &masked.rows, pass);
            let smoothing = self.config.label_smoothing;
            self.output.loss(&predicting, &masked.targets, smoothing, pass)
        })
    }

    /// The logits at some rows of the concatenated texts: rows × vocabulary (f32).
    pub fn token_scores(&self, text: &[u32], sequences: &Ragged, rows: &[usize], pass: &mut Pass) -> Tensor {
        pass.within(|pass| {
            let predicting = self.head_states(text, sequences, rows, pass);
            self.output.scores(&predicting, pass)
        })
    }

    /// The encoder's hidden states: one vector for each token of the concatenated texts, including the
    /// special tokens added around each text.
    pub fn states(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor {
        let (text, sequences) = self.config.stack.special.surround(text, sequences);
        pass.within(|pass| self.encoder.forward(&text, &sequences, pass))
    }

    /// The hidden states of the head, from which the tokens at `rows` are predicted.
    fn head_states(&self, text: &[u32], sequences: &Ragged, rows: &[usize], pass: &mut Pass) -> Tensor {
        let special = &self.config.stack.special;
        let rows = special.surrounded_rows(rows, sequences);
        let (text, sequences) = special.surround(text, sequences);
        let states = self.encoder.forward(&text, &sequences, pass);
        let picked = ops::gather_rows(&states, &rows);
        let hidden = self.head.activated(&picked, Activation::Gelu, Dropout::NONE, pass);
        self.head_norm.forward(&ops::cast(&hidden, DType::F32), pass)
    }
}

impl Model for MaskedModel {
    fn params(&self) -> &Params {
        &self.params
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.check_text(&batch.source, &batch.source_sequences)
    }

    /// Masks tokens and predicts them. The masks are a function of seed and step in training, and of the text
    /// otherwise.
    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        let (text, sequences) = (&batch.source, &batch.source_sequences);
        let StackConfig { vocabulary, special, .. } = &self.config.stack;
        let masked = MaskedText::draw(text, sequences, &Masking::new(*vocabulary, special), pass.stream());
        // Padded if the batch is. With batch norm neither is padded: padding rows would change the
        // statistics.
        let is_padded = self.params.device().replays_steps() && !self.params.has_statistics();
        let masked = if is_padded { masked.padded() } else { masked };
        self.loss_of(&masked, sequences, pass)
    }

    fn special_tokens(&self) -> SpecialTokens {
        self.config.stack.special.clone()
    }

    fn predictions(&self, batch: &Batch) -> usize {
        batch.source_sequences.lengths().map(masked_tokens).sum()
    }
}

impl Inspect for MaskedModel {
    fn stacks(&self) -> Vec<(StackSide, usize)> {
        vec![(StackSide::Encoder, self.config.stack.layers)]
    }

    fn logits_at(&self, batch: &Batch, predictions: &[usize], pass: &mut Pass) -> Tensor {
        let mask = self.config.stack.special.mask;
        let masked: Vec<usize> = (0..batch.source.len()).filter(|&row| batch.source[row] == mask).collect();
        let rows: Vec<usize> = predictions.iter().map(|&prediction| masked[prediction]).collect();
        pass.within(|pass| {
            let predicting = self.head_states(&batch.source, &batch.source_sequences, &rows, pass);
            self.output.inspected(&predicting, pass)
        })
    }
}
