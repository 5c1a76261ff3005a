//! The configuration of a convolutional model, its presets and its checks.
//!
//! ```text
//! base    20+20 layers, d_model 512, 3 taps, dropout 0.2     the paper's for English–Romanian
//! iwslt     4+3 layers, d_model 256, 3 taps, dropout 0.2     for small corpora
//! small     4+3 layers, d_model 256, 3 taps, dropout 0.1     for a few processor cores
//! tiny      2+2 layers, d_model  64, 3 taps, no dropout      for the demo and for tests
//! ```

use serde::{Deserialize, Serialize};

use super::encoder::ConvolutionalEncoderConfig;
use crate::layers::{AttentionScore, Positions, ScoreName, Tying};
use crate::models::config::{ConfigError, check};
pub use crate::recipe::Balance;

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
    /// What keeps the variance of residual sums constant.
    pub balance: Balance,
    /// ε of the layer norms, if there are any.
    pub norm_epsilon: f32,
    /// How positions are encoded.
    pub positions: Positions,
    /// Which embedding matrices are tied.
    pub tying: Tying,
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
            balance: Balance::Scale,
            norm_epsilon: 1e-5,
            positions: Positions::Sinusoidal,
            tying: Tying::All,
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

    /// For corpora from some ten thousand sentences on, and a few processor cores.
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
            balance: self.balance,
            norm_epsilon: self.norm_epsilon,
            dropout: self.dropout,
        }
    }

    /// The model in a few words.
    pub fn summary(&self) -> String {
        let ConvolutionalConfig { encoder_layers, decoder_layers, d_model, encoder_taps, .. } = self;
        format!(
            "Convolutional network of {encoder_layers} + {decoder_layers} layers, d {d_model}, {encoder_taps} taps"
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
        ])?;
        check::odd_taps("encoder_taps", self.encoder_taps)?;
        check::score_of_heads(self.score)?;
        check::positions(self.positions, self.d_model)?;
        check::rates(&[("dropout", self.dropout), ("label_smoothing", self.label_smoothing)])?;
        check::epsilon(self.norm_epsilon)?;
        check::vocabularies(self.source_vocabulary, self.target_vocabulary, self.tying)
    }
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
        assert_eq!(complaint(|c| c.decoder_layers = 0), "decoder_layers is 0: set it to at least 1");
        assert!(complaint(|c| c.source_vocabulary = 1).starts_with("source_vocabulary is 1"));
        assert!(complaint(|c| c.d_model = 33).contains("even d_model, not 33"));
        assert!(complaint(|c| c.dropout = 1.0).starts_with("dropout is 1"));
        assert!(complaint(|c| c.norm_epsilon = 0.0).starts_with("norm_epsilon is 0"));
        assert!(complaint(|c| c.target_vocabulary = 31).contains("have 30 and 31 tokens"));
    }
}
