//! The families of models: what a model is made of, whichever family it is of, and how it is built from that.

use heedful_tensor::Params;
use serde::{Deserialize, Serialize};

use crate::models::Model;
use crate::models::config::ConfigError;
use crate::models::convolution::{Convolutional, ConvolutionalConfig};
use crate::models::recurrent::{RecurrentConfig, Seq2Seq};
use crate::models::transformer::{HeadError, HeadName, Transformer, TransformerConfig};
use crate::tasks::Task;
use crate::tasks::classify::{ClassifierConfig, EncoderClassifier};
use crate::tasks::language::{LanguageConfig, LanguageModel};
use crate::tasks::masked::{MaskedConfig, MaskedModel};

/// What a model is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "lowercase")]
pub enum ModelConfig {
    /// An encoder and a decoder of attention.
    Transformer(TransformerConfig),
    /// A recurrent encoder and decoder, with or without attention between them.
    Recurrent(RecurrentConfig),
    /// An encoder and a decoder of gated convolutions, with attention in every decoder layer.
    Convolutional(ConvolutionalConfig),
    /// An encoder and a label for each text.
    Classifier(ClassifierConfig),
    /// A decoder without a source, which goes on with texts.
    Language(LanguageConfig),
    /// An encoder that fills gaps.
    Masked(MaskedConfig),
}

impl ModelConfig {
    /// The name of the family.
    pub fn family(&self) -> &'static str {
        match self {
            ModelConfig::Transformer(_) => "transformer",
            ModelConfig::Recurrent(_) => "recurrent",
            ModelConfig::Convolutional(_) => "convolutional",
            ModelConfig::Classifier(_) => "classifier",
            ModelConfig::Language(_) => "language",
            ModelConfig::Masked(_) => "masked",
        }
    }

    /// What such a model is for.
    pub fn task(&self) -> Task {
        match self {
            ModelConfig::Transformer(_) | ModelConfig::Recurrent(_) | ModelConfig::Convolutional(_) => {
                Task::Translate
            }
            ModelConfig::Classifier(_) => Task::Classify,
            ModelConfig::Language(_) => Task::Lm,
            ModelConfig::Masked(_) => Task::Mlm,
        }
    }

    /// Whether this can be built; if not, the error says what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            ModelConfig::Transformer(config) => config.validate(),
            ModelConfig::Recurrent(config) => config.validate(),
            ModelConfig::Convolutional(config) => config.validate(),
            ModelConfig::Classifier(config) => config.validate(),
            ModelConfig::Language(config) => config.validate(),
            ModelConfig::Masked(config) => config.validate(),
        }
    }

    /// A fresh model; `seed` decides its first values.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Model>, ConfigError> {
        Ok(match self {
            ModelConfig::Transformer(config) => Box::new(Transformer::new(config.clone(), seed)?),
            ModelConfig::Recurrent(config) => Box::new(Seq2Seq::new(config.clone(), seed)?),
            ModelConfig::Convolutional(config) => Box::new(Convolutional::new(config.clone(), seed)?),
            ModelConfig::Classifier(config) => Box::new(EncoderClassifier::new(config.clone(), seed)?),
            ModelConfig::Language(config) => Box::new(LanguageModel::new(config.clone(), seed)?),
            ModelConfig::Masked(config) => Box::new(MaskedModel::new(config.clone(), seed)?),
        })
    }

    /// Every head that can be left out.
    pub fn heads(&self) -> Result<Vec<HeadName>, HeadError> {
        match self {
            ModelConfig::Transformer(config) => Ok(config.heads()),
            _ => Err(HeadError::Family { family: self.family() }),
        }
    }

    /// Makes heads of a model silent that was built from this; on an error nothing has changed.
    pub fn silence_heads(&self, params: &Params, heads: &[HeadName]) -> Result<(), HeadError> {
        match self {
            ModelConfig::Transformer(config) => config.silence(params, heads),
            _ if heads.is_empty() => Ok(()),
            _ => Err(HeadError::Family { family: self.family() }),
        }
    }

    /// The model in a few words.
    pub fn summary(&self) -> String {
        match self {
            ModelConfig::Transformer(config) => format!(
                "Transformer of {} + {} layers, d {}, {} heads, ffn {}",
                config.encoder_layers, config.decoder_layers, config.d_model, config.heads, config.d_ff
            ),
            ModelConfig::Recurrent(config) => config.summary(),
            ModelConfig::Convolutional(config) => config.summary(),
            ModelConfig::Classifier(config) => config.summary(),
            ModelConfig::Language(config) => format!("Language model of {}", config.stack.summary()),
            ModelConfig::Masked(config) => format!("Masked language model of {}", config.stack.summary()),
        }
    }
}
