//! The configuration of a language model.

use serde::{Deserialize, Serialize};

use crate::data::SpecialTokens;
use crate::models::config::{ConfigError, check};
use crate::models::recurrent::RecurrentDecoderConfig;
use crate::models::transformer::StackConfig;
use crate::recipe::Family;

/// The configuration of a language model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "LanguageConfigFields", into = "LanguageConfigFields")]
pub struct LanguageConfig {
    /// The stack and its vocabulary.
    pub stack: LanguageStack,
    /// The kind of training text: lines, which end with `<eos>`, or running text.
    pub text: TextShape,
    /// Number of tokens in a block of running text, in training and in perplexity measurements, whose results
    /// depend on it. The default is `LanguageConfig::BLOCK`.
    pub block: Option<usize>,
    /// Label smoothing: the share of the target's probability that is spread over the other tokens.
    pub label_smoothing: f32,
    /// Whether the output projection has a bias.
    pub output_bias: bool,
}

/// The decoder of a language model.
#[derive(Clone, Debug, PartialEq)]
pub enum LanguageStack {
    /// Causal self attention.
    Transformer(StackConfig),
    /// A recurrent network.
    Recurrent(RecurrentDecoderConfig),
}

impl From<StackConfig> for LanguageStack {
    fn from(stack: StackConfig) -> LanguageStack {
        LanguageStack::Transformer(stack)
    }
}

impl From<RecurrentDecoderConfig> for LanguageStack {
    fn from(stack: RecurrentDecoderConfig) -> LanguageStack {
        LanguageStack::Recurrent(stack)
    }
}

/// The kind of text that a language model was trained on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextShape {
    /// Each line is a text.
    Lines,
    /// One long text including line ends, cut into blocks.
    Running,
}

impl LanguageConfig {
    /// The default number of tokens in a block.
    pub(crate) const BLOCK: usize = 256;

    /// Checks that a model can be built; the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match &self.stack {
            LanguageStack::Transformer(stack) => stack.validate()?,
            LanguageStack::Recurrent(stack) => stack.validate()?,
        }
        check::sizes(&self.block.map(|block| ("block", block)).into_iter().collect::<Vec<_>>())?;
        check::rates(&[("label_smoothing", self.label_smoothing)])
    }

    /// The family of the stack.
    pub fn family(&self) -> Family {
        match &self.stack {
            LanguageStack::Transformer(_) => Family::Transformer,
            LanguageStack::Recurrent(_) => Family::Recurrent,
        }
    }

    /// Maximum number of tokens of a text; `None` for no limit.
    pub fn longest(&self) -> Option<usize> {
        match &self.stack {
            LanguageStack::Transformer(stack) => stack.positions.longest(),
            LanguageStack::Recurrent(_) => None,
        }
    }

    /// The special tokens.
    pub fn special_tokens(&self) -> SpecialTokens {
        match &self.stack {
            LanguageStack::Transformer(stack) => stack.special.clone(),
            LanguageStack::Recurrent(_) => SpecialTokens::default(),
        }
    }

    /// A one-line description of the model.
    pub fn summary(&self) -> String {
        match &self.stack {
            LanguageStack::Transformer(stack) => format!("Language model of {}", stack.summary()),
            LanguageStack::Recurrent(stack) => format!("Recurrent language model of {}", stack.summary()),
        }
    }
}

/// The representation in `config.json`: `stack` for a Transformer, `recurrent` for a recurrent network.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LanguageConfigFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stack: Option<StackConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recurrent: Option<RecurrentDecoderConfig>,
    text: TextShape,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block: Option<usize>,
    label_smoothing: f32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    output_bias: bool,
}

impl From<LanguageConfig> for LanguageConfigFields {
    fn from(config: LanguageConfig) -> LanguageConfigFields {
        let LanguageConfig { stack, text, block, label_smoothing, output_bias } = config;
        let (stack, recurrent) = match stack {
            LanguageStack::Transformer(stack) => (Some(stack), None),
            LanguageStack::Recurrent(stack) => (None, Some(stack)),
        };
        LanguageConfigFields { stack, recurrent, text, block, label_smoothing, output_bias }
    }
}

impl TryFrom<LanguageConfigFields> for LanguageConfig {
    type Error = &'static str;

    fn try_from(fields: LanguageConfigFields) -> Result<LanguageConfig, &'static str> {
        let LanguageConfigFields { stack, recurrent, text, block, label_smoothing, output_bias } = fields;
        let stack = match (stack, recurrent) {
            (Some(stack), None) => LanguageStack::Transformer(stack),
            (None, Some(stack)) => LanguageStack::Recurrent(stack),
            (None, None) => {
                return Err("a language model has either `stack` or `recurrent`, and this one has neither");
            }
            (Some(_), Some(_)) => return Err("a language model has either `stack` or `recurrent`, not both"),
        };
        Ok(LanguageConfig { stack, text, block, label_smoothing, output_bias })
    }
}
