//! The configuration of a convolutional model, its presets and its checks.
//!
//! ```text
//! base    20+20 layers, d_model 512, kernel 3, dropout 0.2     the paper's model for English–Romanian
//! iwslt     4+3 layers, d_model 256, kernel 3, dropout 0.2     for small corpora
//! small     4+3 layers, d_model 256, kernel 3, dropout 0.1     for a few CPU cores
//! tiny      2+2 layers, d_model  64, kernel 3, no dropout      for the demo and for tests
//! ```

use serde::{Deserialize, Serialize};

use super::encoder::ConvolutionalEncoderConfig;
use crate::layers::{AttentionScore, Positions, ScoreName, Tying};
use crate::models::config::{ConfigError, check};
pub use crate::recipe::{Balance, ConvolutionKind};

/// The configuration of a convolutional encoder-decoder. Start from a preset and change what differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalConfig {
    /// Size of the source vocabulary.
    pub source_vocabulary: usize,
    /// Size of the target vocabulary.
    pub target_vocabulary: usize,
    /// Width of the token vectors between layers.
    pub d_model: usize,
    /// Depth of the encoder.
    pub encoder_layers: usize,
    /// Depth of the decoder.
    pub decoder_layers: usize,
    /// Kernel size of the encoder's convolutions; odd.
    pub encoder_taps: usize,
    /// Kernel size of the decoder's convolutions.
    pub decoder_taps: usize,
    /// The factor by which the dilation grows from layer to layer; 1 for no dilation.
    #[serde(default = "no_dilation")]
    pub dilation: usize,
    /// The activation after each convolution: gated (GLU) or ReLU.
    #[serde(default)]
    pub kind: ConvolutionKind,
    /// How the variance of residual sums is kept constant.
    pub balance: Balance,
    /// ε of the layer norms, if the model has any.
    pub norm_epsilon: f32,
    /// How positions are encoded.
    pub positions: Positions,
    /// Which embedding matrices are tied.
    pub tying: Tying,
    /// Whether the output projection has a bias.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_bias: bool,
    /// The attention score between decoder and encoder states.
    #[serde(with = "ScoreName")]
    pub score: AttentionScore,
    /// Dropout rate on the embeddings, on the input of every convolution and on the last state.
    pub dropout: f32,
    /// Label smoothing: the probability mass of the target that is spread over the other tokens.
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

    /// For corpora of a few hundred thousand sentences.
    pub fn iwslt(vocabulary: usize) -> ConvolutionalConfig {
        let (encoder_layers, decoder_layers) = (4, 3);
        ConvolutionalConfig {
            d_model: 256,
            encoder_layers,
            decoder_layers,
            ..ConvolutionalConfig::base(vocabulary)
        }
    }

    /// For corpora of ten thousand sentences or more, and a few CPU cores.
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

    /// A one-line description of the model.
    pub fn summary(&self) -> String {
        let ConvolutionalConfig { encoder_layers, decoder_layers, d_model, encoder_taps, .. } = self;
        let kind = match self.kind {
            ConvolutionKind::Gated => String::new(),
            kind => format!(", {kind}"),
        };
        format!(
            "Convolutional network of {encoder_layers} + {decoder_layers} layers, d {d_model}, kernel {encoder_taps}{}{kind}",
            describe_dilation(self.dilation)
        )
    }

    /// Checks that a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::sizes(&[
            ("d_model", self.d_model),
            ("encoder_layers", self.encoder_layers),
            ("decoder_layers", self.decoder_layers),
            ("encoder_taps", self.encoder_taps),
            ("decoder_taps", self.decoder_taps),
            ("dilation", self.dilation),
        ])?;
        check::odd_kernel("encoder_taps", self.encoder_taps)?;
        check::score_of_heads(self.score)?;
        check::positions(self.positions, self.d_model)?;
        check::rates(&[("dropout", self.dropout), ("label_smoothing", self.label_smoothing)])?;
        check::epsilon(self.norm_epsilon)?;
        check::vocabularies(self.source_vocabulary, self.target_vocabulary, self.tying)
    }
}

/// The dilation of a layer: the distance between neighbouring positions of its kernel.
pub(super) fn dilation_of(factor: usize, layer: usize) -> usize {
    // Saturating: any distance beyond the longest text is equivalent.
    factor.saturating_pow(layer as u32)
}

/// The default of configurations that were saved without a dilation.
pub(super) fn no_dilation() -> usize {
    1
}

/// The dilation for a description; empty without dilation.
pub(super) fn describe_dilation(dilation: usize) -> String {
    if dilation == 1 { String::new() } else { format!(" dilated by {dilation}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(change: impl FnOnce(&mut ConvolutionalConfig)) -> String {
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
    fn errors_explain_what_to_change() {
        assert_eq!(
            error_of(|c| c.encoder_taps = 4),
            "encoder_taps is 4: a kernel that is centred on its token has an odd size, use 3 or 5"
        );
        assert_eq!(error_of(|c| c.decoder_taps = 0), "decoder_taps is 0: set it to at least 1");
        assert_eq!(error_of(|c| c.dilation = 0), "dilation is 0: set it to at least 1");
        assert_eq!(error_of(|c| c.decoder_layers = 0), "decoder_layers is 0: set it to at least 1");
        assert!(error_of(|c| c.source_vocabulary = 1).starts_with("source_vocabulary is 1"));
        assert!(error_of(|c| c.d_model = 33).contains("even d_model, not 33"));
        assert!(error_of(|c| c.dropout = 1.0).starts_with("dropout is 1"));
        assert!(error_of(|c| c.norm_epsilon = 0.0).starts_with("norm_epsilon is 0"));
        assert!(error_of(|c| c.target_vocabulary = 31).contains("have 30 and 31 tokens"));
    }
    #[test]
    fn configurations_without_kind_and_dilation_are_gated_and_not_dilated() {
        let mut json = serde_json::to_value(ConvolutionalConfig::tiny(30)).expect("JSON");
        let fields = json.as_object_mut().expect("an object");
        assert!(fields.remove("dilation").is_some() && fields.remove("kind").is_some());
        let config: ConvolutionalConfig = serde_json::from_value(json).expect("a configuration");
        assert_eq!(config, ConvolutionalConfig::tiny(30));
    }

    #[test]
    fn dilation_grows_exponentially_and_saturates() {
        assert_eq!([0, 1, 2, 3].map(|layer| dilation_of(2, layer)), [1, 2, 4, 8]);
        assert_eq!([0, 5].map(|layer| dilation_of(1, layer)), [1, 1]);
        assert_eq!(dilation_of(3, 1000), usize::MAX);
    }
}
