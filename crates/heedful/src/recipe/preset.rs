//! Models and their training as others have found them good.
//!
//! ```text
//! tiny    TransformerConfig::tiny                                          for trying things out
//! small   TransformerConfig::small   inverse root, peak 1e-3               the defaults of all keys
//! iwslt   TransformerConfig::iwslt   inverse root, peak 5e-4, decay 1e-4   what small corpora are usually trained with
//! base    TransformerConfig::base    noam, 25,000 tokens, 100,000 steps    the paper's
//! big     TransformerConfig::big     noam, 25,000 tokens, 300,000 steps    the paper's
//! ```

use super::{Averaging, PositionKind, Preset, Recipe, ScheduleKind};
use crate::layers::Positions;
use crate::models::transformer::{StackConfig, TransformerConfig};

impl Recipe {
    /// The recipe that a preset stands for; files are still to be named.
    pub fn preset(preset: Preset) -> Recipe {
        let mut recipe = Recipe::default();
        recipe.model.preset = preset;
        // Sizes of vocabularies are no business of presets.
        recipe.take_model(&match preset {
            Preset::Tiny => TransformerConfig::tiny(2),
            Preset::Small => TransformerConfig::small(2),
            Preset::Iwslt => TransformerConfig::iwslt(2),
            Preset::Base => TransformerConfig::base(2),
            Preset::Big => TransformerConfig::big(2),
        });
        let (training, checkpoint) = (&mut recipe.training, &mut recipe.checkpoint);
        match preset {
            Preset::Tiny | Preset::Small => {}
            Preset::Iwslt => {
                (training.warmup, training.peak) = (4000, 5e-4);
                training.weight_decay = 1e-4;
            }
            Preset::Base | Preset::Big => {
                training.schedule = ScheduleKind::Noam;
                training.warmup = 4000;
                training.batch_tokens = 25_000;
                checkpoint.average = Averaging::Last;
                (training.steps, checkpoint.average_count) = match preset {
                    Preset::Big => (Some(300_000), 20),
                    _ => (Some(100_000), 5),
                };
            }
        }
        recipe
    }

    /// Makes the encoder as wide and deep as another one.
    pub(crate) fn take_encoder(&mut self, stack: &StackConfig) {
        let model = &mut self.model;
        model.d_model = stack.d_model;
        model.d_ff = stack.d_ff;
        model.heads = stack.heads;
        model.key_width = stack.key_width;
        model.value_width = stack.value_width;
        model.encoder_layers = stack.layers;
        model.norm = stack.norm;
        model.norm_epsilon = exact(stack.norm_epsilon);
        model.activation = stack.activation;
        model.positions = match stack.positions {
            Positions::Sinusoidal => PositionKind::Sinusoidal,
            Positions::Learned { max_length } => {
                model.max_positions = max_length;
                PositionKind::Learned
            }
            Positions::None => PositionKind::None,
        };
        model.score = stack.score;
        model.window = stack.window;
    }

    fn take_model(&mut self, config: &TransformerConfig) {
        let (model, training) = (&mut self.model, &mut self.training);
        model.d_model = config.d_model;
        model.d_ff = config.d_ff;
        model.heads = config.heads;
        model.key_width = config.key_width;
        model.value_width = config.value_width;
        model.encoder_layers = config.encoder_layers;
        model.decoder_layers = config.decoder_layers;
        model.norm = config.norm;
        model.norm_epsilon = exact(config.norm_epsilon);
        model.activation = config.activation;
        model.positions = match config.positions {
            Positions::Sinusoidal => PositionKind::Sinusoidal,
            Positions::Learned { .. } => PositionKind::Learned,
            Positions::None => PositionKind::None,
        };
        model.tying = config.tying;
        model.score = config.score;
        model.window = config.window;
        training.dropout = exact(config.dropout.residual);
        training.attention_dropout = exact(config.dropout.attention);
        training.feed_forward_dropout = exact(config.dropout.feed_forward);
        training.label_smoothing = exact(config.label_smoothing);
    }
}

/// The f64 that is written as this f32 is: 0.1, not 0.10000000149.
fn exact(value: f32) -> f64 {
    value.to_string().parse().expect("a number is written as one")
}
