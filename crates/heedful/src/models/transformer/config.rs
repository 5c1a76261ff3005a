//! The configuration of a Transformer and its checks. The presets are defined by recipes.

use heedful_tensor::ops::Activation;
use serde::{Deserialize, Serialize};

use super::layer::{ActivationName, DropoutRates, LayerConfig};
use super::stack_config::{StackConfig, is_scaled, scaled};
use crate::data::SpecialTokens;
use crate::layers::{AttentionScore, Norm, NormKind, Positions, ScoreName, Tying};
use crate::models::config::{ConfigError, check};
use crate::models::family::EncoderDecoderFamily;
use crate::recipe::{DecoderLayer, Preset, Recipe};

/// The configuration of a Transformer encoder-decoder. Start from a preset and change what differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransformerConfig {
    /// Size of the source vocabulary.
    pub source_vocabulary: usize,
    /// Size of the target vocabulary.
    pub target_vocabulary: usize,
    /// The special tokens of its vocabularies.
    #[serde(default, skip_serializing_if = "SpecialTokens::are_default")]
    pub special: SpecialTokens,
    /// Width of the token vectors between layers.
    pub d_model: usize,
    /// Width inside the feed-forward layers.
    pub d_ff: usize,
    /// Number of heads of every attention layer.
    pub heads: usize,
    /// Width of the keys of all heads together, h · d_k; `d_model` if not given.
    pub key_width: Option<usize>,
    /// Width of the values of all heads together, h · d_v; `d_model` if not given.
    pub value_width: Option<usize>,
    /// Depth of the encoder.
    pub encoder_layers: usize,
    /// Depth of the decoder.
    pub decoder_layers: usize,
    /// The decoder's first sublayer: causal self attention or SSRU.
    #[serde(default, skip_serializing_if = "DecoderLayer::is_attention")]
    pub decoder_layer: DecoderLayer,
    /// Pre-norm or post-norm.
    pub norm: Norm,
    /// Layer norm or batch norm.
    #[serde(default, skip_serializing_if = "NormKind::is_layer")]
    pub norm_kind: NormKind,
    /// ε of the layer norms.
    pub norm_epsilon: f32,
    /// Activation of the feed-forward layers.
    #[serde(with = "ActivationName")]
    pub activation: Activation,
    /// How positions are encoded.
    pub positions: Positions,
    /// Whether token vectors are multiplied by √d_model before positions are added.
    #[serde(default = "scaled", skip_serializing_if = "is_scaled")]
    pub scale_embeddings: bool,
    /// Whether a norm follows the sum of token and position vectors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub embedding_norm: bool,
    /// Which embedding matrices are tied.
    pub tying: Tying,
    /// Whether the output projection has a bias.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_bias: bool,
    /// The score of a query and a key.
    #[serde(with = "ScoreName")]
    pub score: AttentionScore,
    /// Sliding-window self attention: a token attends only to tokens at this distance or nearer, in encoder
    /// and decoder.
    pub window: Option<usize>,
    /// Dropout rates in training.
    pub dropout: DropoutRates,
    /// Label smoothing: the probability mass of the target that is spread over the other tokens.
    pub label_smoothing: f32,
}

impl TransformerConfig {
    /// The paper's base model over one joint vocabulary.
    pub fn base(vocabulary: usize) -> TransformerConfig {
        TransformerConfig::preset(Preset::Base, vocabulary)
    }

    /// The paper's big model.
    pub fn big(vocabulary: usize) -> TransformerConfig {
        TransformerConfig::preset(Preset::Big, vocabulary)
    }

    /// For corpora of a few hundred thousand sentences: half the feed-forward width, more dropout.
    pub fn iwslt(vocabulary: usize) -> TransformerConfig {
        TransformerConfig::preset(Preset::Iwslt, vocabulary)
    }

    /// For corpora of ten thousand sentences or more, and a few CPU cores.
    pub fn small(vocabulary: usize) -> TransformerConfig {
        TransformerConfig::preset(Preset::Small, vocabulary)
    }

    /// For the demo and for tests.
    pub fn tiny(vocabulary: usize) -> TransformerConfig {
        TransformerConfig::preset(Preset::Tiny, vocabulary)
    }

    /// The configuration of a preset over one joint vocabulary.
    pub fn preset(preset: Preset, vocabulary: usize) -> TransformerConfig {
        TransformerConfig::from_recipe(&Recipe::preset(preset), [vocabulary; 2])
    }

    /// The configuration of the blocks of both stacks.
    pub fn layer(&self) -> LayerConfig {
        self.encoder().layer()
    }

    /// The configuration of the encoder as a separate model.
    pub fn encoder(&self) -> StackConfig {
        StackConfig {
            vocabulary: self.source_vocabulary,
            special: self.special.clone(),
            d_model: self.d_model,
            d_ff: self.d_ff,
            heads: self.heads,
            key_width: self.key_width,
            value_width: self.value_width,
            layers: self.encoder_layers,
            norm: self.norm,
            norm_kind: self.norm_kind,
            norm_epsilon: self.norm_epsilon,
            activation: self.activation,
            positions: self.positions,
            scale_embeddings: self.scale_embeddings,
            embedding_norm: self.embedding_norm,
            score: self.score,
            window: self.window,
            dropout: self.dropout,
        }
    }

    /// The configuration of the decoder as a separate model, without cross attention.
    pub fn decoder(&self) -> StackConfig {
        StackConfig { vocabulary: self.target_vocabulary, layers: self.decoder_layers, ..self.encoder() }
    }

    /// A one-line description of the model.
    pub fn summary(&self) -> String {
        let TransformerConfig { encoder_layers, decoder_layers, d_model, heads, d_ff, .. } = self;
        format!(
            "Transformer of {encoder_layers} + {decoder_layers} layers, d {d_model}, {heads} heads, ffn {d_ff}"
        )
    }

    /// Checks that a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.layer().validate()?;
        check::sizes(&[("encoder_layers", self.encoder_layers), ("decoder_layers", self.decoder_layers)])?;
        check::positions(self.positions, self.d_model)?;
        check::rates(&[("label_smoothing", self.label_smoothing)])?;
        check::vocabularies(self.source_vocabulary, self.target_vocabulary, self.tying)?;
        check::special_tokens(&self.special, [self.source_vocabulary, self.target_vocabulary])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(change: impl FnOnce(&mut TransformerConfig)) -> String {
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
    fn errors_explain_what_to_change() {
        assert_eq!(
            error_of(|c| c.heads = 5),
            "5 heads do not divide d_model 64: choose heads that divide it, or a d_model that is a multiple of 5 (for \
             instance 65)"
        );
        assert_eq!(error_of(|c| c.encoder_layers = 0), "encoder_layers is 0: set it to at least 1");
        assert_eq!(
            error_of(|c| c.encoder_layers = 1 << 32),
            "encoder_layers is 4294967296: it may be at most 1000"
        );
        assert_eq!(
            error_of(|c| c.d_ff = usize::MAX),
            format!("d_ff is {}: it may be at most 10000000", usize::MAX)
        );
        assert!(error_of(|c| c.source_vocabulary = 10_000_001).ends_with("at most 10000000"));
        assert_eq!(error_of(|c| c.heads = 0), "heads is 0: set it to at least 1");
        assert_eq!(
            error_of(|c| c.source_vocabulary = 1),
            "source_vocabulary is 1: a vocabulary needs at least 2 tokens"
        );
        assert!(error_of(|c| c.value_width = Some(33)).starts_with("2 heads do not divide value_width 33"));
        assert!(
            error_of(|c| c.positions = Positions::Learned { max_length: 0 })
                .contains("learned positions is 0")
        );
        let odd = error_of(|c| (c.d_model, c.heads) = (33, 1));
        assert_eq!(odd, "sinusoidal positions need an even d_model, not 33: use 34 or learned positions");
        for rate in [1.0, -0.1, f32::NAN] {
            assert!(error_of(|c| c.dropout.attention = rate).starts_with("dropout.attention is"));
        }
        assert!(error_of(|c| c.norm_epsilon = 0.0).starts_with("norm_epsilon is 0"));
        assert!(error_of(|c| c.target_vocabulary = 31).contains("have 30 and 31 tokens"));
    }

    #[test]
    fn untied_vocabularies_may_differ() {
        for tying in [Tying::TargetOutput, Tying::None] {
            let config = TransformerConfig { target_vocabulary: 31, tying, ..TransformerConfig::tiny(30) };
            assert_eq!(config.validate(), Ok(()));
        }
    }
}
