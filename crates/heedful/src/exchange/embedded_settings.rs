//! Settings that other projects have no key for, stored in their `config.json` under the key `heedful`, which
//! they ignore. An import reads them, so that a model survives a round trip through an export. They do not
//! affect what the model computes: the other project's own settings and tensors define that.

use serde::{Deserialize, Serialize};

use super::feature_order::{FeatureOrder, reorder_features};
use crate::data::SpecialTokens;
use crate::layers::{Halves, Positions};
use crate::models::EncoderDecoderConfig;
use crate::models::transformer::{DropoutRates, StackConfig, TransformerConfig};
use crate::store::formats::{FormatError, JsonObject};
use crate::store::weights::Weights;
use crate::tasks::ModelConfig;
use crate::tasks::language::{LanguageStack, TextShape};

/// The key in `config.json`.
pub(super) const KEY: &str = "heedful";

/// The settings under [`KEY`]; a missing one keeps the value that the import found elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct EmbeddedSettings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    special: Option<SpecialTokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dropout: Option<DropoutRates>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    label_smoothing: Option<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<TextShape>,
    /// For language models of running text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<usize>,
    /// For masked language models: whether the bias of the output projection is a parameter, or zeros that
    /// only BERT's format requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_bias: Option<bool>,
    /// For translators: the positions before the export reordered the features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    positions: Option<Positions>,
}

impl EmbeddedSettings {
    /// The settings of a heedful model.
    pub(super) fn of(config: &ModelConfig) -> EmbeddedSettings {
        let from_stack = |stack: &StackConfig| EmbeddedSettings {
            special: Some(stack.special.clone()),
            dropout: Some(stack.dropout),
            ..EmbeddedSettings::default()
        };
        match config {
            ModelConfig::Translate(EncoderDecoderConfig::Transformer(config)) => EmbeddedSettings {
                special: Some(config.special.clone()),
                dropout: Some(config.dropout),
                label_smoothing: Some(config.label_smoothing),
                positions: Some(config.positions),
                ..EmbeddedSettings::default()
            },
            ModelConfig::Language(config) => {
                let of_stack = match &config.stack {
                    LanguageStack::Transformer(stack) => from_stack(stack),
                    LanguageStack::Recurrent(_) => EmbeddedSettings::default(),
                };
                EmbeddedSettings {
                    label_smoothing: Some(config.label_smoothing),
                    text: Some(config.text),
                    block: config.block,
                    ..of_stack
                }
            }
            ModelConfig::Masked(config) => EmbeddedSettings {
                label_smoothing: Some(config.label_smoothing),
                output_bias: Some(config.output_bias),
                ..from_stack(&config.stack)
            },
            _ => EmbeddedSettings::default(),
        }
    }

    /// Reads them from another project's settings, which are in `file`.
    pub(super) fn read(settings: &JsonObject, file: &str) -> Result<EmbeddedSettings, FormatError> {
        let Some(stored) = settings.get(KEY) else { return Ok(EmbeddedSettings::default()) };
        serde_json::from_value(stored.clone()).map_err(|error| {
            let problem = format!("it is not in the form that `heedful export` writes ({error})");
            FormatError::damaged(file, format!("`{KEY}`"), problem)
        })
    }

    /// The value for `config.json`.
    pub(super) fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("serializable settings")
    }

    /// Applies the settings to an imported model.
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
                let is_zero = weights.get(BIAS).is_some_and(|bias| bias.iter().all(|&value| value == 0.0));
                if self.output_bias == Some(false) && is_zero {
                    *weights = weights.without(BIAS);
                    config.output_bias = false;
                }
            }
            _ => {}
        }
    }

    fn restore_rates(&self, special: &mut SpecialTokens, dropout: &mut DropoutRates) {
        if let Some(stored) = &self.special {
            special.clone_from(stored);
        }
        *dropout = self.dropout.unwrap_or(*dropout);
    }

    /// Reorders the features for interleaved sinusoids again, if the export changed their order.
    fn restore_positions(&self, config: &mut TransformerConfig, weights: &mut Weights) {
        let were_reordered = (self.positions, config.positions)
            == (Some(Positions::Sinusoidal), Positions::Halves(Halves::MarianMt));
        // Sinusoids require an even width; building the model rejects an odd one.
        if were_reordered && config.d_model > 0 && config.d_model.is_multiple_of(2) {
            *weights = reorder_features(weights, config.d_model, FeatureOrder::Pairs);
            config.positions = Positions::Sinusoidal;
        }
    }
}
