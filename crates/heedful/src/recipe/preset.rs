//! Presets: named defaults for a model and its training.
//!
//! ```text
//! tiny    1+1 layers, d_model   64,  2 heads, d_ff  128, no dropout    for experiments; trains in seconds on a laptop
//! small   3+3 layers, d_model  256,  4 heads, d_ff 1024, dropout 0.1   the defaults of all keys; for a few CPU cores
//! iwslt   6+6 layers, d_model  512,  4 heads, d_ff 1024, dropout 0.3   for small corpora; peak 5e-4, decay 1e-4
//! base    6+6 layers, d_model  512,  8 heads, d_ff 2048, dropout 0.1   the paper's: noam, 25,000 tokens, 100,000 steps
//! big     6+6 layers, d_model 1024, 16 heads, d_ff 4096, dropout 0.3   the paper's: noam, 25,000 tokens, 300,000 steps
//! ```

use super::{Averaging, Preset, Recipe, ScheduleKind};

impl Recipe {
    /// The recipe of a preset, without any files.
    #[doc(hidden)]
    pub fn preset(preset: Preset) -> Recipe {
        let mut recipe = Recipe::default();
        let Recipe { model, training, checkpoint, .. } = &mut recipe;
        model.preset = preset;
        let depth;
        (depth, model.d_model, model.heads, model.d_ff, training.dropout) = match preset {
            Preset::Tiny => (1, 64, 2, 128, 0.0),
            Preset::Small => (3, 256, 4, 1024, 0.1),
            Preset::Iwslt => (6, 512, 4, 1024, 0.3),
            Preset::Base => (6, 512, 8, 2048, 0.1),
            Preset::Big => (6, 1024, 16, 4096, 0.3),
        };
        (model.encoder_layers, model.decoder_layers) = (depth, depth);
        match preset {
            Preset::Tiny => training.label_smoothing = 0.0,
            Preset::Small => {}
            Preset::Iwslt => {
                (training.warmup, training.lr) = (4000, 5e-4);
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
}
