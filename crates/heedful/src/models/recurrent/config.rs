//! The configuration of recurrent models, its presets and its checks.
//!
//! ```text
//! base    2+2 layers, d_model 512, both directions of 512, LSTM, dropout 0.2
//! tiny    1+1 layers, d_model  64, both directions of  64, GRU,  no dropout       for the demo
//! ```

use heedful_tensor::ops::Cell;
use serde::{Deserialize, Serialize};

use crate::layers::{AttentionScore, Positions, ScoreName, Tying};
use crate::models::config::{ConfigError, check};
use crate::models::convolution::ConvolutionalEncoderConfig;
pub use crate::recipe::{AttentionOrder, Directions};

/// The shape of a [`super::RecurrentStack`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentStackConfig {
    /// The kind of recurrent cell.
    #[serde(with = "CellName")]
    pub cell: Cell,
    /// Width of the input vectors.
    pub input: usize,
    /// Width of a state in one direction.
    pub width: usize,
    /// Depth.
    pub layers: usize,
    /// Unidirectional or bidirectional.
    pub directions: Directions,
    /// ε of a layer norm on every layer's output; `None` for no norm.
    pub norm_epsilon: Option<f32>,
    /// Dropout rate between layers.
    pub dropout: f32,
}

impl RecurrentStackConfig {
    /// Width of an output: the directions concatenated.
    pub(crate) fn output_width(&self) -> usize {
        self.directions.list().len() * self.width
    }

    /// Checks that a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::sizes(&[("input", self.input), ("width", self.width), ("layers", self.layers)])?;
        check::rates(&[("dropout", self.dropout)])?;
        self.norm_epsilon.map_or(Ok(()), check::epsilon)
    }
}

/// The configuration of a recurrent encoder-decoder. Start from a preset and change what differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentConfig {
    /// Size of the source vocabulary.
    pub source_vocabulary: usize,
    /// Size of the target vocabulary.
    pub target_vocabulary: usize,
    /// The kind of recurrent cell.
    #[serde(with = "CellName")]
    pub cell: Cell,
    /// Width of the token vectors and of the decoder's states.
    pub d_model: usize,
    /// Width of the encoder's states, in one direction.
    pub d_encoder: usize,
    /// Depth of the encoder.
    pub encoder_layers: usize,
    /// Depth of the decoder.
    pub decoder_layers: usize,
    /// Unidirectional or bidirectional encoder.
    pub directions: Directions,
    /// A convolutional encoder instead of the recurrent one; `d_encoder` and `directions` are ignored then.
    #[serde(default)]
    pub convolution: Option<ConvolutionalSource>,
    /// ε of a layer norm on every recurrent layer's output; `None` for no norm.
    pub norm_epsilon: Option<f32>,
    /// How the decoder attends to the source; `None` without attention.
    pub attention: Option<RecurrentAttention>,
    /// Which embedding matrices are tied.
    pub tying: Tying,
    /// Whether the output projection has a bias.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub output_bias: bool,
    /// Dropout rate on embeddings, between layers and before the output projection.
    pub dropout: f32,
    /// Label smoothing: the probability mass of the target that is spread over the other tokens.
    pub label_smoothing: f32,
}

/// A convolutional encoder for a recurrent decoder (Gehring et al., 2016).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConvolutionalSource {
    /// The convolutions; their width must be that of the model.
    pub stack: ConvolutionalEncoderConfig,
    /// How positions are encoded: without positions a convolution sees only relative order within its kernel.
    pub positions: Positions,
}

/// How a recurrent decoder attends to the source.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentAttention {
    /// The score of a decoder state and an encoder state.
    #[serde(with = "ScoreName")]
    pub score: AttentionScore,
    /// Hidden width of the additive score.
    pub width: usize,
    /// Soft or hard attention.
    pub hardness: Hardness,
    /// Whether the decoder attends before or after its recurrent step.
    #[serde(default)]
    pub order: AttentionOrder,
}

/// Soft or hard attention, and how hard attention is trained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hardness {
    /// The weighted mean of the whole source.
    #[default]
    Soft,
    /// One position, sampled in training; trained by the score-function estimator (REINFORCE).
    ScoreFunction {
        /// Weight of the reward term relative to the cross entropy.
        reward: f32,
        /// Weight of the entropy bonus on the attention weights, which delays their convergence to one
        /// position.
        entropy: f32,
    },
    /// One position, sampled in training; the gradient is that of the weighted mean (straight-through
    /// estimator).
    StraightThrough,
}

impl Hardness {
    /// Whether the context is a single position.
    pub(crate) fn is_hard(self) -> bool {
        self != Hardness::Soft
    }
}

/// The names of the cells in `config.json`; the type itself is in the tensor crate.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Cell", rename_all = "lowercase")]
pub(super) enum CellName {
    Simple,
    Gru,
    Lstm,
}

impl RecurrentConfig {
    /// Two LSTM layers in encoder and decoder, with one joint vocabulary.
    pub fn base(vocabulary: usize) -> RecurrentConfig {
        RecurrentConfig {
            source_vocabulary: vocabulary,
            target_vocabulary: vocabulary,
            cell: Cell::Lstm,
            d_model: 512,
            d_encoder: 512,
            encoder_layers: 2,
            decoder_layers: 2,
            directions: Directions::Both,
            convolution: None,
            norm_epsilon: None,
            attention: None,
            tying: Tying::All,
            output_bias: false,
            dropout: 0.2,
            label_smoothing: 0.1,
        }
    }

    /// For the demo and for tests.
    pub fn tiny(vocabulary: usize) -> RecurrentConfig {
        RecurrentConfig {
            cell: Cell::Gru,
            d_model: 64,
            d_encoder: 64,
            encoder_layers: 1,
            decoder_layers: 1,
            dropout: 0.0,
            label_smoothing: 0.0,
            ..RecurrentConfig::base(vocabulary)
        }
    }

    /// Width of the encoder's outputs, which the decoder attends to.
    pub(crate) fn memory_width(&self) -> usize {
        self.convolution.map_or_else(|| self.encoder().output_width(), |source| source.stack.d_model)
    }

    /// How positions of the source are encoded; `None` for a recurrent encoder.
    pub(super) fn positions(&self) -> Positions {
        self.convolution.map_or(Positions::None, |source| source.positions)
    }

    /// The configuration of the recurrent encoder.
    pub fn encoder(&self) -> RecurrentStackConfig {
        RecurrentStackConfig {
            cell: self.cell,
            input: self.d_model,
            width: self.d_encoder,
            layers: self.encoder_layers,
            directions: self.directions,
            norm_epsilon: self.norm_epsilon,
            dropout: self.dropout,
        }
    }

    /// The configuration of the decoder. Its input is the newest token's embedding concatenated with the
    /// context, or with the last readout for input feeding.
    pub fn decoder(&self) -> RecurrentStackConfig {
        let context_width = match self.attention.map(|attention| attention.order) {
            None | Some(AttentionOrder::Before) => self.memory_width(),
            Some(AttentionOrder::After) => 0,
            Some(AttentionOrder::Feeding) => self.d_model,
        };
        RecurrentStackConfig {
            input: self.d_model + context_width,
            width: self.d_model,
            layers: self.decoder_layers,
            directions: Directions::Forward,
            ..self.encoder()
        }
    }

    /// A one-line description of the model.
    pub fn summary(&self) -> String {
        let cell = match self.cell {
            Cell::Simple => "simple",
            Cell::Gru => "GRU",
            Cell::Lstm => "LSTM",
        };
        let attention = match self.attention.map(|attention| attention.hardness) {
            None => "no attention",
            Some(Hardness::Soft) => "soft attention",
            Some(Hardness::ScoreFunction { .. } | Hardness::StraightThrough) => "hard attention",
        };
        let order = match self.attention.map(|attention| attention.order) {
            None | Some(AttentionOrder::Before) => "",
            Some(AttentionOrder::After) => " after the step",
            Some(AttentionOrder::Feeding) => " after the step, with input feeding",
        };
        let encoder = if self.convolution.is_some() { " convolutional" } else { "" };
        let RecurrentConfig { encoder_layers, decoder_layers, d_model, .. } = self;
        format!(
            "Recurrent network ({cell}) of {encoder_layers}{encoder} + {decoder_layers} layers, d {d_model}, \
             {attention}{order}"
        )
    }

    fn validate_attention(&self) -> Result<(), ConfigError> {
        let Some(RecurrentAttention { score, width, hardness, .. }) = self.attention else { return Ok(()) };
        check::sizes(&[("attention.width", width)])?;
        if let Hardness::ScoreFunction { reward, entropy } = hardness {
            check::not_negative("attention.hardness.reward", reward)?;
            check::not_negative("attention.hardness.entropy", entropy)?;
        }
        let (query, key) = (self.d_model, self.memory_width());
        if score.requires_equal_widths() && query != key {
            return Err(ConfigError::ScoreWidths { score: score.name(), query, key });
        }
        Ok(())
    }

    /// Checks that a model can be built from this; if not, the error explains what to change.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check::sizes(&[
            ("d_model", self.d_model),
            ("d_encoder", self.d_encoder),
            ("encoder_layers", self.encoder_layers),
            ("decoder_layers", self.decoder_layers),
        ])?;
        check::rates(&[("dropout", self.dropout), ("label_smoothing", self.label_smoothing)])?;
        self.norm_epsilon.map_or(Ok(()), check::epsilon)?;
        if let Some(ConvolutionalSource { stack, positions }) = self.convolution {
            stack.validate()?;
            check::positions(positions, self.d_model)?;
            if stack.d_model != self.d_model {
                let (encoder, d_model) = (stack.d_model, self.d_model);
                return Err(ConfigError::EncoderWidth { encoder, d_model });
            }
        }
        self.validate_attention()?;
        check::vocabularies(self.source_vocabulary, self.target_vocabulary, self.tying)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::convolution::ConvolutionalConfig;

    fn error_of(change: impl FnOnce(&mut RecurrentConfig)) -> String {
        let mut config = RecurrentConfig::tiny(30);
        change(&mut config);
        config.validate().expect_err("this cannot be built").to_string()
    }

    #[test]
    fn presets_can_be_built() {
        for preset in [RecurrentConfig::base, RecurrentConfig::tiny] {
            let config = preset(100);
            assert_eq!(config.validate(), Ok(()));
            assert_eq!((config.encoder().validate(), config.decoder().validate()), (Ok(()), Ok(())));
        }
    }

    #[test]
    fn errors_explain_what_to_change() {
        assert_eq!(error_of(|c| c.decoder_layers = 0), "decoder_layers is 0: set it to at least 1");
        assert_eq!(error_of(|c| c.d_encoder = 0), "d_encoder is 0: set it to at least 1");
        assert!(error_of(|c| c.source_vocabulary = 1).starts_with("source_vocabulary is 1"));
        assert!(error_of(|c| c.dropout = 1.0).starts_with("dropout is 1"));
        assert!(error_of(|c| c.norm_epsilon = Some(0.0)).starts_with("norm_epsilon is 0"));
        assert!(error_of(|c| c.target_vocabulary = 31).contains("have 30 and 31 tokens"));
        let attention = RecurrentAttention {
            score: AttentionScore::Dot,
            width: 8,
            hardness: Hardness::Soft,
            order: AttentionOrder::Before,
        };
        assert!(
            error_of(|c| c.attention = Some(attention))
                .starts_with("the score dot multiplies a state of the")
        );
        let stack = ConvolutionalConfig::tiny(30).encoder();
        let wide = ConvolutionalEncoderConfig { d_model: 32, ..stack };
        let positions = Positions::Sinusoidal;
        let source = |stack| Some(ConvolutionalSource { stack, positions });
        assert!(error_of(|c| c.convolution = source(wide)).contains("encoder is 32 wide and d_model is 64"));
        let even = ConvolutionalEncoderConfig { taps: 4, ..stack };
        assert!(error_of(|c| c.convolution = source(even)).starts_with("taps is 4"));
        let entropy = Hardness::ScoreFunction { reward: 1.0, entropy: -1.0 };
        let attention = RecurrentAttention { score: AttentionScore::General, hardness: entropy, ..attention };
        assert!(error_of(|c| c.attention = Some(attention)).contains("entropy is -1"));
    }

    #[test]
    fn a_configuration_survives_a_round_trip_through_json() {
        let hardness = Hardness::ScoreFunction { reward: 0.1, entropy: 0.01 };
        let order = AttentionOrder::Feeding;
        let attention =
            Some(RecurrentAttention { score: AttentionScore::Additive, width: 8, hardness, order });
        let config = RecurrentConfig { norm_epsilon: Some(1e-5), attention, ..RecurrentConfig::base(100) };
        let text = serde_json::to_string(&config).expect("JSON");
        assert!(text.contains(r#""cell":"lstm""#), "{text}");
        assert_eq!(serde_json::from_str::<RecurrentConfig>(&text).expect("a configuration"), config);
    }

    #[test]
    fn the_default_order_is_attention_before_the_step() {
        let text = r#"{"score":"dot","width":8,"hardness":"soft"}"#;
        let attention =
            serde_json::from_str::<RecurrentAttention>(text).expect("a configuration without an order");
        assert_eq!(attention.order, AttentionOrder::Before);
    }
}
