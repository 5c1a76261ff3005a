//! Recipes: everything that decides how a model is trained, in one file that people read.
//!
//! ```toml
//! [data]
//! src = "train.en"
//! tgt = "train.de"
//!
//! [training]
//! dropout = 0.3
//! ```
//!
//! [`keys`](SECTIONS) declares each key once. Values start from the preset; the recipe file overrides the preset, a flag
//! overrides the file, and `--set` overrides all ([`Layers`]).

mod choices;
mod error;
mod family;
mod keys;
mod layers;
mod literal;
mod preset;
mod print;
mod setting;
mod table;
mod task;

use std::fmt::Write;

use heedful_tensor::ops::AdamOptions;
use twox_hash::XxHash3_64;

pub use choices::{AttentionKind, Averaging, Family, PositionKind, Preset, ScheduleKind};
pub use error::RecipeError;
pub use keys::{Data, Keeping, Model, Output, Recipe, SECTIONS, Search, Training, Validation, Vocabulary};
pub use layers::{Layers, find_key};
pub use literal::Literal;
pub use table::{Key, Section};

use super::checkpoint::Keep;
use super::{Schedule, TrainerOptions};
use crate::layers::Score;

impl Recipe {
    /// All keys in the order of the table.
    pub fn keys() -> impl Iterator<Item = &'static Key> {
        SECTIONS.iter().flat_map(|section| section.keys)
    }

    /// The learning rate. A cosine without [`Training::steps`] is refused by [`Layers::resolve`]; here it would never
    /// fall.
    pub fn schedule(&self) -> Schedule {
        let Training { warmup, peak, factor, floor, steps, .. } = self.training;
        match self.training.schedule {
            ScheduleKind::Noam => Schedule::Noam { d_model: self.model.d_model, warmup, factor },
            ScheduleKind::InverseSqrt => Schedule::InverseSqrt { peak, warmup },
            ScheduleKind::Cosine => {
                Schedule::Cosine { peak, floor, warmup, total: steps.unwrap_or(u64::MAX) }
            }
            ScheduleKind::Constant => Schedule::Constant { rate: peak },
        }
    }

    /// How the trainer works.
    pub fn trainer_options(&self) -> TrainerOptions {
        let training = &self.training;
        TrainerOptions {
            compute: training.compute,
            seed: training.seed,
            schedule: self.schedule(),
            adam: AdamOptions {
                beta1: training.beta1 as f32,
                beta2: training.beta2 as f32,
                epsilon: training.adam_epsilon as f32,
                weight_decay: training.weight_decay as f32,
                clip_norm: training.clip_norm.map_or(f32::INFINITY, |norm| norm as f32),
            },
            average_decay: training.ema.map(|decay| decay as f32),
            explosion_factor: training.explosion.map(|factor| factor as f32),
        }
    }

    /// Which checkpoints stay: at least those that will be averaged.
    pub fn keep(&self) -> Keep {
        let Keeping { keep_last, keep_best, average, average_count, .. } = self.checkpoint;
        let wanted = |averaging| if average == averaging { average_count } else { 0 };
        Keep { last: keep_last.max(wanted(Averaging::Last)), best: keep_best.max(wanted(Averaging::Best)) }
    }

    /// A name for all that decides the numbers of a run: two runs with the same one, on the same data and instruction
    /// set, have the same weights at every step. How long a run goes, what is kept and what is written play no part.
    pub fn fingerprint(&self) -> String {
        let decides = |key: &&Key| match (key.section, key.name) {
            ("training", "steps") => self.training.schedule == ScheduleKind::Cosine,
            ("training", "time") => false,
            // Younger than the first runs of classifiers: at its default they keep their names, and can be resumed.
            ("model", "pooling_score") => self.model.pooling_score != Score::Additive,
            (section, _) => ["data", "vocabulary", "model", "training"].contains(&section),
        };
        let mut text = String::new();
        for key in Recipe::keys().filter(decides) {
            writeln!(text, "{} = {}", key.path(), key.value(self)).expect("a string takes everything");
        }
        format!("{:016x}", XxHash3_64::oneshot(text.as_bytes()))
    }

    /// The keys in which two recipes differ, with both values.
    pub fn differences(&self, other: &Recipe) -> Vec<(&'static Key, Literal, Literal)> {
        let both = |key: &'static Key| (key, key.value(self), key.value(other));
        Recipe::keys().map(both).filter(|(_, ours, theirs)| ours != theirs).collect()
    }
}

#[cfg(test)]
mod tests;
