//! What a Transformer is made of, and whether that can be built.
//!
//! ```text
//! base    6+6 layers, d_model  512, 8 heads,  d_ff 2048, dropout 0.1      the paper's
//! big     6+6 layers, d_model 1024, 16 heads, d_ff 4096, dropout 0.3      the paper's
//! iwslt   6+6 layers, d_model  512, 4 heads,  d_ff 1024, dropout 0.3      for small corpora
//! small   3+3 layers, d_model  256, 4 heads,  d_ff 1024, dropout 0.1      for a few processor cores
//! tiny    1+1 layers, d_model   64, 2 heads,  d_ff  128, no dropout       for the demo: seconds on a laptop
//! ```

use heedful_tensor::ops::Activation;
use serde::{Deserialize, Serialize};

use crate::config::{ConfigError, check};
use crate::layers::{Norm, Positions, Score, ScoreName};

/// The shape and the choices of a Transformer. Start from a preset and change what differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformerConfig {
    /// Tokens that a source may consist of.
    pub source_vocabulary: usize,
    /// Tokens that a target may consist of.
    pub target_vocabulary: usize,
    /// Width of the vector of a token, between all layers.
    pub d_model: usize,
    /// Width inside the feed-forward layers.
    pub d_ff: usize,
    /// Heads of every attention layer.
    pub heads: usize,
    /// Width of the keys of all heads together, h · d_k; `d_model` if not given.
    pub key_width: Option<usize>,
    /// Width of the values of all heads together, h · d_v; `d_model` if not given.
    pub value_width: Option<usize>,
    /// Depth of the encoder.
    pub encoder_layers: usize,
    /// Depth of the decoder.
    pub decoder_layers: usize,
    /// Where the norms stand.
    pub norm: Norm,
    /// ε of the norms.
    pub norm_epsilon: f32,
    /// In the feed-forward layers.
    #[serde(with = "ActivationName")]
    pub activation: Activation,
    /// How a word's place is told.
    pub positions: Positions,
    /// Which embedding matrices are one.
    pub tying: Tying,
    /// How a query is compared with a key.
    #[serde(with = "ScoreName")]
    pub score: Score,
    /// Restricted self attention: a token sees only tokens at this distance or nearer, in encoder and decoder.
    pub window: Option<usize>,
    /// What is dropped in training.
    pub dropout: DropoutRates,
    /// Probability that the training goal spreads over the wrong tokens.
    pub label_smoothing: f32,
}

/// Which of the three embedding matrices (source, target, output projection) are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tying {
    /// All three: `embedding`.
    #[default]
    All,
    /// Source and target: `source_embedding` and `output`.
    SourceTarget,
    /// Target and output: `source_embedding` and `target_embedding`.
    TargetOutput,
    /// None: `source_embedding`, `target_embedding`, `output`.
    None,
}

/// How `config.json` calls the activations, which are the tensor crate's.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Activation", rename_all = "lowercase")]
pub(super) enum ActivationName {
    Identity,
    Relu,
    Gelu,
}

/// Dropout rates; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropoutRates {
    /// On every sublayer's output and on the embeddings.
    pub residual: f32,
    /// On the attention weights.
    pub attention: f32,
    /// Inside the feed-forward layers.
    pub feed_forward: f32,
}

impl TransformerConfig {
    /// The paper's base model over one joint vocabulary.
    pub fn base(vocabulary: usize) -> TransformerConfig {
        TransformerConfig {
            source_vocabulary: vocabulary,
            target_vocabulary: vocabulary,
            d_model: 512,
            d_ff: 2048,
            heads: 8,
            key_width: None,
            value_width: None,
            encoder_layers: 6,
            decoder_layers: 6,
            norm: Norm::Post,
            norm_epsilon: 1e-5,
            activation: Activation::Relu,
            positions: Positions::Sinusoidal,
            tying: Tying::All,
            score: Score::ScaledDot,
            window: None,
            dropout: DropoutRates { residual: 0.1, ..DropoutRates::default() },
            label_smoothing: 0.1,
        }
    }

    /// The paper's big model.
    pub fn big(vocabulary: usize) -> TransformerConfig {
        let dropout = DropoutRates { residual: 0.3, ..DropoutRates::default() };
        TransformerConfig {
            d_model: 1024,
            d_ff: 4096,
            heads: 16,
            dropout,
            ..TransformerConfig::base(vocabulary)
        }
    }

    /// For corpora of some hundred thousand sentences: half the feed-forward width, more dropout.
    pub fn iwslt(vocabulary: usize) -> TransformerConfig {
        let dropout = DropoutRates { residual: 0.3, ..DropoutRates::default() };
        TransformerConfig { d_ff: 1024, heads: 4, dropout, ..TransformerConfig::base(vocabulary) }
    }

    /// For corpora of some ten thousand sentences and more on a few processor cores.
    pub fn small(vocabulary: usize) -> TransformerConfig {
        TransformerConfig {
            d_model: 256,
            d_ff: 1024,
            heads: 4,
            encoder_layers: 3,
            decoder_layers: 3,
            ..TransformerConfig::base(vocabulary)
        }
    }

    /// For the demo and for tests.
    pub fn tiny(vocabulary: usize) -> TransformerConfig {
        TransformerConfig {
            d_model: 64,
            d_ff: 128,
            heads: 2,
            encoder_layers: 1,
            decoder_layers: 1,
            dropout: DropoutRates::default(),
            label_smoothing: 0.0,
            ..TransformerConfig::base(vocabulary)
        }
    }

    /// h · d_k.
    pub fn key_width(&self) -> usize {
        self.key_width.unwrap_or(self.d_model)
    }

    /// h · d_v.
    pub fn value_width(&self) -> usize {
        self.value_width.unwrap_or(self.d_model)
    }

    /// Whether this can be built; if not, the error says what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::sizes(&[
            ("d_model", self.d_model),
            ("d_ff", self.d_ff),
            ("heads", self.heads),
            ("encoder_layers", self.encoder_layers),
            ("decoder_layers", self.decoder_layers),
            ("key_width", self.key_width()),
            ("value_width", self.value_width()),
        ])?;
        let key_name = if self.key_width.is_some() { "key_width" } else { "d_model" };
        let value_name = if self.value_width.is_some() { "value_width" } else { "d_model" };
        for (what, width) in [(key_name, self.key_width()), (value_name, self.value_width())] {
            if !width.is_multiple_of(self.heads) {
                return Err(ConfigError::HeadsDoNotDivide { heads: self.heads, what, width });
            }
        }
        check::score_of_heads(self.score)?;
        check::positions(self.positions, self.d_model)?;
        check::rates(&[
            ("dropout.residual", self.dropout.residual),
            ("dropout.attention", self.dropout.attention),
            ("dropout.feed_forward", self.dropout.feed_forward),
            ("label_smoothing", self.label_smoothing),
        ])?;
        check::epsilon(self.norm_epsilon)?;
        check::vocabularies(self.source_vocabulary, self.target_vocabulary, self.tying)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(change: impl FnOnce(&mut TransformerConfig)) -> String {
        let mut config = TransformerConfig::tiny(30);
        change(&mut config);
        config.validate().expect_err("this cannot be built").to_string()
    }

    #[test]
    fn presets_can_be_built() {
        for preset in [
            TransformerConfig::base,
            TransformerConfig::big,
            TransformerConfig::iwslt,
            TransformerConfig::small,
            TransformerConfig::tiny,
        ] {
            assert_eq!(preset(100).validate(), Ok(()));
        }
    }

    #[test]
    fn complaints_say_what_to_change() {
        assert_eq!(
            complaint(|c| c.heads = 5),
            "5 heads do not divide d_model 64: choose heads that divide it, or a d_model that is a multiple of 5 (for \
             instance 65)"
        );
        assert_eq!(complaint(|c| c.encoder_layers = 0), "encoder_layers is 0: set it to at least 1");
        assert_eq!(complaint(|c| c.heads = 0), "heads is 0: set it to at least 1");
        assert_eq!(
            complaint(|c| c.source_vocabulary = 1),
            "source_vocabulary is 1: a vocabulary needs at least 2 tokens"
        );
        assert!(complaint(|c| c.value_width = Some(33)).starts_with("2 heads do not divide value_width 33"));
        assert!(
            complaint(|c| c.positions = Positions::Learned { max_length: 0 })
                .contains("learned positions is 0")
        );
        let odd = complaint(|c| (c.d_model, c.heads) = (33, 1));
        assert_eq!(odd, "sinusoidal positions need an even d_model, not 33: use 34 or learned positions");
        for rate in [1.0, -0.1, f32::NAN] {
            assert!(complaint(|c| c.dropout.attention = rate).starts_with("dropout.attention is"));
        }
        assert!(complaint(|c| c.norm_epsilon = 0.0).starts_with("norm_epsilon is 0"));
        assert!(complaint(|c| c.target_vocabulary = 31).contains("have 30 and 31 tokens"));
    }

    #[test]
    fn untied_vocabularies_may_differ() {
        for tying in [Tying::TargetOutput, Tying::None] {
            let config = TransformerConfig { target_vocabulary: 31, tying, ..TransformerConfig::tiny(30) };
            assert_eq!(config.validate(), Ok(()));
        }
    }
}
