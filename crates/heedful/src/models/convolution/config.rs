//! The configuration of a convolutional model, its presets and its checks.
//!
//! ```text
//! base    20+20 layers, d_model 512, 3 taps, dropout 0.2     the paper's for English–Romanian
//! iwslt     4+3 layers, d_model 256, 3 taps, dropout 0.2     for small corpora
//! small     4+3 layers, d_model 256, 3 taps, dropout 0.1     for a few CPU cores
//! tiny      2+2 layers, d_model  64, 3 taps, no dropout      for the demo and for tests
//! ```

use serde::{Deserialize, Serialize};

use super::encoder::ConvolutionalEncoderConfig;
use crate::layers::{AttentionScore, Positions, ScoreName, Tying};
use crate::models::config::{ConfigError, check};
pub use crate::recipe::{Balance, ConvolutionKind};

/// The shape and the choices of a convolutional model. Start from a preset and change what differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalConfig {
    /// Size of the source vocabulary.
    pub source_vocabulary: usize,
    /// Size of the target vocabulary.
    pub target_vocabulary: usize,
    /// Width of the vector of a token, between all layers.
    pub d_model: usize,
    /// Depth of the encoder.
    pub encoder_layers: usize,
    /// Depth of the decoder.
    pub decoder_layers: usize,
    /// Number of tokens in a window of the encoder; odd.
    pub encoder_taps: usize,
    /// Number of tokens in a window of the decoder.
    pub decoder_taps: usize,
    /// The factor by which the distance between taps grows from layer to layer; 1 for windows without gaps.
    #[serde(default = "no_dilation")]
    pub dilation: usize,
    /// What follows each convolution.
    #[serde(default)]
    pub kind: ConvolutionKind,
    /// What keeps the variance of residual sums constant.
    pub balance: Balance,
    /// ε of the layer norms, if there are any.
    pub norm_epsilon: f32,
    /// How positions are encoded.
    pub positions: Positions,
    /// Which embedding matrices are tied.
    pub tying: Tying,
    /// Whether the output projection has a bias.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_bias: bool,
    /// How the decoder's state is compared with the encoder's.
    #[serde(with = "ScoreName")]
    pub score: AttentionScore,
    /// On the embeddings, on the input of every convolution and on the last state.
    pub dropout: f32,
    /// Label smoothing: the share of the target's probability that is spread over the other tokens.
    pub label_smoothing: f32,
}

impl ConvolutionalConfig {
    /// The paper's model for English–Romanian, over one joint vocabulary.
    pub fn base(vocabulary: usize) -> ConvolutionalConfig {
        ConvolutionalConfig {
            source_vocabulary: vocabulary,
            target_vocabulary: vocabulary,
            d_model: 512,
            encoder_layers: 20,
            decoder_layers: 20,
            encoder_taps: 3,
            decoder_taps: 3,
            dilation: 1,
            kind: ConvolutionKind::Gated,
            balance: Balance::Scale,
            norm_epsilon: 1e-5,
            positions: Positions::Sinusoidal,
            tying: Tying::All,
            output_bias: false,
            score: AttentionScore::ScaledDot,
            dropout: 0.2,
            label_smoothing: 0.1,
        }
    }

    /// For corpora of some hundred thousand sentences.
    pub fn iwslt(vocabulary: usize) -> ConvolutionalConfig {
        let (encoder_layers, decoder_layers) = (4, 3);
        ConvolutionalConfig {
            d_model: 256,
            encoder_layers,
            decoder_layers,
            ..ConvolutionalConfig::base(vocabulary)
        }
    }

    /// For corpora from some ten thousand sentences on, and a few CPU cores.
    pub fn small(vocabulary: usize) -> ConvolutionalConfig {
        ConvolutionalConfig { dropout: 0.1, ..ConvolutionalConfig::iwslt(vocabulary) }
    }

    /// For the demo and for tests.
    pub fn tiny(vocabulary: usize) -> ConvolutionalConfig {
        ConvolutionalConfig {
            d_model: 64,
            encoder_layers: 2,
            decoder_layers: 2,
            dropout: 0.0,
            label_smoothing: 0.0,
            ..ConvolutionalConfig::base(vocabulary)
        }
    }

    /// The configuration of the encoder.
    pub fn encoder(&self) -> ConvolutionalEncoderConfig {
        ConvolutionalEncoderConfig {
            d_model: self.d_model,
            layers: self.encoder_layers,
            taps: self.encoder_taps,
            dilation: self.dilation,
            kind: self.kind,
            balance: self.balance,
            norm_epsilon: self.norm_epsilon,
            dropout: self.dropout,
        }
    }

    /// The model in a few words.
    pub fn summary(&self) -> String {
        let ConvolutionalConfig { encoder_layers, decoder_layers, d_model, encoder_taps, .. } = self;
        let kind = match self.kind {
            ConvolutionKind::Gated => String::new(),
            kind => format!(", {kind}"),
        };
        format!(
            "Convolutional network of {encoder_layers} + {decoder_layers} layers, d {d_model}, {encoder_taps} taps{}{kind}",
            dilated(self.dilation)
        )
    }

    /// Whether a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::sizes(&[
            ("d_model", self.d_model),
            ("encoder_layers", self.encoder_layers),
            ("decoder_layers", self.decoder_layers),
            ("encoder_taps", self.encoder_taps),
            ("decoder_taps", self.decoder_taps),
            ("dilation", self.dilation),
        ])?;
        check::odd_taps("encoder_taps", self.encoder_taps)?;
        check::score_of_heads(self.score)?;
        check::positions(self.positions, self.d_model)?;
        check::rates(&[("dropout", self.dropout), ("label_smoothing", self.label_smoothing)])?;
        check::epsilon(self.norm_epsilon)?;
        check::vocabularies(self.source_vocabulary, self.target_vocabulary, self.tying)
    }
}

/// The dilation of a layer: the distance between its taps.
pub(super) fn dilation_of(factor: usize, layer: usize) -> usize {
    // More than any text is long is as good as any other such distance.
    factor.saturating_pow(layer as u32)
}

/// In configurations of models that were saved without a dilation.
pub(super) fn no_dilation() -> usize {
    1
}

/// A dilation in a few words, if there is one.
pub(super) fn dilated(dilation: usize) -> String {
    if dilation == 1 { String::new() } else { format!(" dilated by {dilation}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(change: impl FnOnce(&mut ConvolutionalConfig)) -> String {
        let mut config = ConvolutionalConfig::tiny(30);
        change(&mut config);
        config.validate().expect_err("this cannot be built").to_string()
    }

    #[test]
    fn presets_can_be_built() {
        for preset in [
            ConvolutionalConfig::base,
            ConvolutionalConfig::iwslt,
            ConvolutionalConfig::small,
            ConvolutionalConfig::tiny,
        ] {
            assert_eq!(preset(100).validate(), Ok(()));
        }
    }

    #[test]
    fn complaints_say_what_to_change() {
        assert_eq!(
            complaint(|c| c.encoder_taps = 4),
            "encoder_taps is 4: a window with its token in the middle is odd, use 3 or 5"
        );
        assert_eq!(complaint(|c| c.decoder_taps = 0), "decoder_taps is 0: set it to at least 1");
        assert_eq!(complaint(|c| c.dilation = 0), "dilation is 0: set it to at least 1");
        assert_eq!(complaint(|c| c.decoder_layers = 0), "decoder_layers is 0: set it to at least 1");
        assert!(complaint(|c| c.source_vocabulary = 1).starts_with("source_vocabulary is 1"));
        assert!(complaint(|c| c.d_model = 33).contains("even d_model, not 33"));
        assert!(complaint(|c| c.dropout = 1.0).starts_with("dropout is 1"));
        assert!(complaint(|c| c.norm_epsilon = 0.0).starts_with("norm_epsilon is 0"));
        assert!(complaint(|c| c.target_vocabulary = 31).contains("have 30 and 31 tokens"));
    }
    #[test]
    fn a_model_that_was_saved_without_them_is_gated_and_has_no_dilation() {
        let mut json = serde_json::to_value(ConvolutionalConfig::tiny(30)).expect("JSON");
        let fields = json.as_object_mut().expect("an object");
        assert!(fields.remove("dilation").is_some() && fields.remove("kind").is_some());
        let config: ConvolutionalConfig = serde_json::from_value(json).expect("a configuration");
        assert_eq!(config, ConvolutionalConfig::tiny(30));
    }

    #[test]
    fn dilations_grow_by_their_factor_and_never_wrap_around() {
        assert_eq!([0, 1, 2, 3].map(|layer| dilation_of(2, layer)), [1, 2, 4, 8]);
        assert_eq!([0, 5].map(|layer| dilation_of(1, layer)), [1, 1]);
        assert_eq!(dilation_of(3, 1000), usize::MAX);
    }
}
