//! What a recipe's family of models decides: where values start from, and what is built.

use super::{AttentionKind, Family, PositionKind, Recipe};
use crate::layers::{Positions, Score};
use crate::models::convolution::{Balance, ConvolutionalConfig};
use crate::models::recurrent::{Directions, Hardness, RecurrentAttention, RecurrentConfig};
use crate::models::transformer::{DropoutRates, TransformerConfig};
use crate::tasks::{ConfigError, ModelConfig};

impl Recipe {
    /// Chooses a family, with the values that it starts from where they differ from the Transformer's.
    pub fn start_from_family(&mut self, family: Family) {
        self.model.family = family;
        if family == Family::Recurrent {
            // Bahdanau's.
            self.model.score = Score::Additive;
            // Gradients that went through many steps vary more.
            self.training.clip_norm = Some(1.0);
        }
    }

    /// The translator, once the vocabularies are known.
    pub fn model_config(&self, source: usize, target: usize) -> Result<ModelConfig, ConfigError> {
        let config = match self.model.family {
            Family::Transformer => ModelConfig::Transformer(self.transformer(source, target)),
            Family::Recurrent => ModelConfig::Recurrent(self.recurrent(source, target)),
            Family::Convolutional => ModelConfig::Convolutional(self.convolutional(source, target)),
        };
        config.validate().map(|()| config)
    }

    pub(super) fn transformer(&self, source: usize, target: usize) -> TransformerConfig {
        let Recipe { model, training, .. } = self;
        TransformerConfig {
            source_vocabulary: source,
            target_vocabulary: target,
            d_model: model.d_model,
            d_ff: model.d_ff,
            heads: model.heads,
            key_width: model.key_width,
            value_width: model.value_width,
            encoder_layers: model.encoder_layers,
            decoder_layers: model.decoder_layers,
            norm: model.norm,
            norm_epsilon: model.norm_epsilon as f32,
            activation: model.activation,
            positions: self.positions(),
            tying: model.tying,
            score: model.score,
            window: model.window,
            dropout: DropoutRates {
                residual: training.dropout as f32,
                attention: training.attention_dropout as f32,
                feed_forward: training.feed_forward_dropout as f32,
            },
            label_smoothing: training.label_smoothing as f32,
        }
    }

    pub(super) fn recurrent(&self, source: usize, target: usize) -> RecurrentConfig {
        let Recipe { model, training, .. } = self;
        let hardness = match model.attention {
            AttentionKind::None => None,
            AttentionKind::Soft => Some(Hardness::Soft),
            AttentionKind::Hard => {
                Some(Hardness::ScoreFunction { reward: model.reward as f32, entropy: model.entropy as f32 })
            }
            AttentionKind::StraightThrough => Some(Hardness::StraightThrough),
        };
        let attention = |hardness| RecurrentAttention { score: model.score, width: model.d_model, hardness };
        RecurrentConfig {
            source_vocabulary: source,
            target_vocabulary: target,
            cell: model.cell,
            d_model: model.d_model,
            d_encoder: model.d_encoder.unwrap_or(model.d_model.div_ceil(2)),
            encoder_layers: model.encoder_layers,
            decoder_layers: model.decoder_layers,
            directions: Directions::Both,
            norm_epsilon: None,
            attention: hardness.map(attention),
            tying: model.tying,
            dropout: training.dropout as f32,
            label_smoothing: training.label_smoothing as f32,
        }
    }

    pub(super) fn convolutional(&self, source: usize, target: usize) -> ConvolutionalConfig {
        let Recipe { model, training, .. } = self;
        ConvolutionalConfig {
            source_vocabulary: source,
            target_vocabulary: target,
            d_model: model.d_model,
            encoder_layers: model.encoder_layers,
            decoder_layers: model.decoder_layers,
            encoder_taps: model.taps,
            decoder_taps: model.taps,
            balance: Balance::Scale,
            norm_epsilon: model.norm_epsilon as f32,
            positions: self.positions(),
            tying: model.tying,
            score: model.score,
            dropout: training.dropout as f32,
            label_smoothing: training.label_smoothing as f32,
        }
    }

    fn positions(&self) -> Positions {
        match self.model.positions {
            PositionKind::Sinusoidal => Positions::Sinusoidal,
            PositionKind::Learned => Positions::Learned { max_length: self.model.max_positions },
            PositionKind::None => Positions::None,
        }
    }
}
