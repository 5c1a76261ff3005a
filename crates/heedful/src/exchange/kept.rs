//! What the settings of other projects have no words for, under a key of ours in their `config.json`, which they leave alone. An
//! import reads it, so that a model that was exported comes back as it was. What the model computes, their own settings and tensors say.

use serde::{Deserialize, Serialize};

use super::stream::{WaveOrder, reordered};
use crate::data::SpecialTokens;
use crate::layers::{Halves, Positions};
use crate::models::EncoderDecoderConfig;
use crate::models::transformer::{DropoutRates, StackConfig, TransformerConfig};
use crate::store::formats::{FormatError, JsonObject};
use crate::store::weights::Weights;
use crate::tasks::ModelConfig;
use crate::tasks::language::{LanguageStack, TextShape};

/// The key.
pub(super) const KEY: &str = "heedful";

/// What is kept; what is missing stays as an import finds it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Kept {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    special: Option<SpecialTokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dropout: Option<DropoutRates>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label_smoothing: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<TextShape>,
    /// Of language models of running text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<usize>,
    /// Of masked language models: whether the bias of the output projection is a parameter, or zeros that BERT must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_bias: Option<bool>,
    /// Of translators: whether their features were put into the order of halves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    positions: Option<Positions>,
}

impl Kept {
    /// Of a model of ours.
    pub(super) fn of(config: &ModelConfig) -> Kept {
        let of_stack = |stack: &StackConfig| Kept {
            special: Some(stack.special.clone()),
            dropout: Some(stack.dropout),
            ..Kept::default()
        };
        match config {
            ModelConfig::Translate(EncoderDecoderConfig::Transformer(config)) => Kept {
                special: Some(config.special.clone()),
                dropout: Some(config.dropout),
                label_smoothing: Some(config.label_smoothing),
                positions: Some(config.positions),
                ..Kept::default()
            },
            ModelConfig::Language(config) => {
                let kept = match &config.stack {
                    LanguageStack::Transformer(stack) => of_stack(stack),
                    LanguageStack::Recurrent(_) => Kept::default(),
                };
                Kept {
                    label_smoothing: Some(config.label_smoothing),
                    text: Some(config.text),
                    block: config.block,
                    ..kept
                }
            }
            ModelConfig::Masked(config) => Kept {
                label_smoothing: Some(config.label_smoothing),
                output_bias: Some(config.output_bias),
                ..of_stack(&config.stack)
            },
            _ => Kept::default(),
        }
    }

    /// Of another project's settings, which are in `file`.
    pub(super) fn read(settings: &JsonObject, file: &str) -> Result<Kept, FormatError> {
        let Some(kept) = settings.get(KEY) else { return Ok(Kept::default()) };
        serde_json::from_value(kept.clone()).map_err(|error| {
            let problem = format!("it is not what `heedful export` writes there ({error})");
            FormatError::damaged(file, format!("`{KEY}`"), problem)
        })
    }

    /// For `config.json`.
    pub(super) fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("names and numbers")
    }

    /// Gives an imported model what was kept.
    pub(super) fn restore(self, config: &mut ModelConfig, weights: &mut Weights) {
        match config {
            ModelConfig::Translate(EncoderDecoderConfig::Transformer(config)) => {
                self.restore_positions(config, weights);
                let TransformerConfig { special, dropout, label_smoothing, .. } = config;
                self.restore_rates(special, dropout);
                *label_smoothing = self.label_smoothing.unwrap_or(*label_smoothing);
            }
            ModelConfig::Language(config) => {
                if let LanguageStack::Transformer(StackConfig { special, dropout, .. }) = &mut config.stack {
                    self.restore_rates(special, dropout);
                }
                config.label_smoothing = self.label_smoothing.unwrap_or(config.label_smoothing);
                if let Some(text) = self.text {
                    (config.text, config.block) = (text, self.block);
                }
            }
            ModelConfig::Masked(config) => {
                self.restore_rates(&mut config.stack.special, &mut config.stack.dropout);
                config.label_smoothing = self.label_smoothing.unwrap_or(config.label_smoothing);
                const BIAS: &str = "output.bias";
                let is_zero = weights.get(BIAS).is_some_and(|bias| bias.iter().all(|&number| number == 0.0));
                if self.output_bias == Some(false) && is_zero {
                    *weights = weights.without(BIAS);
                    config.output_bias = false;
                }
            }
            _ => {}
        }
    }

    fn restore_rates(&self, special: &mut SpecialTokens, dropout: &mut DropoutRates) {
        if let Some(kept) = &self.special {
            special.clone_from(kept);
        }
        *dropout = self.dropout.unwrap_or(*dropout);
    }

    /// Puts features back into pairs.
    fn restore_positions(&self, config: &mut TransformerConfig, weights: &mut Weights) {
        let were_moved = (self.positions, config.positions)
            == (Some(Positions::Sinusoidal), Positions::Halves(Halves::MarianMt));
        // No model has an odd width with sinusoids; one that says so is refused when it is built.
        if were_moved && config.d_model > 0 && config.d_model.is_multiple_of(2) {
            *weights = reordered(weights, config.d_model, WaveOrder::Pairs);
            config.positions = Positions::Sinusoidal;
        }
    }
}
