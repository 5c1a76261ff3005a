//! Recipes: all settings of a training run in one readable file.
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
//! [`keys`](SECTIONS) declares each key once. Values come from the preset, and are overridden by the recipe
//! file, flags and `--set`, in this order ([`Overrides`]). The folders of families and tasks define how the
//! values are used (`models/*/recipe.rs`, `tasks/*/recipe.rs`).

mod choices;
mod error;
mod literal;
mod pattern;
mod setting;

mod scope;
mod table;

mod keys;

mod length;
mod limits;
mod overrides;
mod preset;
mod print;

use std::fmt::Write;

use twox_hash::XxHash3_64;

pub use choices::KeptState;
pub use choices::{
    AttentionKind, AttentionOrder, Averaging, Balance, BestBy, ConvolutionKind, DecoderLayer, Directions,
    EncoderKind, Family, Pooling, PositionKind, Preset, RecurrentNorm, ScheduleKind, Task,
};
pub use error::Location;
pub use error::RecipeError;
pub use keys::{
    CheckpointKeys, DataKeys, ModelKeys, OutputKeys, Recipe, SECTIONS, SearchKeys, TrainingKeys,
    ValidationKeys, VocabularyKeys,
};
pub use literal::Literal;
pub(crate) use overrides::Applied;
pub use overrides::{Author, Overrides, find_key};
pub use pattern::NamePattern;
pub use table::Key;
pub use table::Section;

use crate::layers::{Halves, Positions};

impl Recipe {
    /// All keys in the order of the table.
    #[doc(hidden)]
    pub fn keys() -> impl Iterator<Item = &'static Key> {
        SECTIONS.iter().flat_map(|section| section.keys)
    }

    /// The keys of the section `data` that name files, with their non-empty lists of files.
    #[doc(hidden)]
    pub(crate) fn named_files(&self) -> impl Iterator<Item = (&'static Key, Vec<Literal>)> {
        let keys = Recipe::keys().filter(|key| key.section == "data");
        keys.filter_map(|key| match key.value(self) {
            Literal::List(files) if !files.is_empty() => Some((key, files)),
            _ => None,
        })
    }

    /// The position encoding.
    #[doc(hidden)]
    pub fn positions(&self) -> Positions {
        match self.model.positions {
            PositionKind::Sinusoidal => Positions::Sinusoidal,
            PositionKind::MarianMt => Positions::Halves(Halves::MarianMt),
            PositionKind::Marian => Positions::Halves(Halves::Marian),
            PositionKind::OpenNmt => Positions::Halves(Halves::OpenNmt),
            PositionKind::Learned => Positions::Learned { max_length: self.model.max_positions },
            PositionKind::None => Positions::None,
        }
    }

    /// Sets the keys of the position encoding.
    pub(crate) fn set_positions(&mut self, positions: Positions) {
        self.model.positions = match positions {
            Positions::Sinusoidal => PositionKind::Sinusoidal,
            Positions::Halves(Halves::MarianMt) => PositionKind::MarianMt,
            Positions::Halves(Halves::Marian) => PositionKind::Marian,
            Positions::Halves(Halves::OpenNmt) => PositionKind::OpenNmt,
            Positions::Learned { max_length } => {
                self.model.max_positions = max_length;
                PositionKind::Learned
            }
            Positions::None => PositionKind::None,
        };
    }

    /// A hash of all settings that determine the weights: two runs with the same fingerprint, data and
    /// instruction set have the same weights at every step. Run limits, checkpoints and outputs are not
    /// included.
    pub fn fingerprint(&self) -> String {
        let is_included = |key: &&Key| match (key.section, key.name) {
            ("training", "steps") => self.training.schedule.has_end(),
            ("training", "time") => false,
            // Keys added in later versions are included only if they have an effect, so that older runs keep
            // their fingerprints.
            ("model", "norm_kind") => !self.model.norm_kind.is_layer(),
            ("model", "output_bias") => self.model.output_bias,
            ("model", "scale_embeddings") => !self.model.scale_embeddings,
            ("model", "embedding_norm") => self.model.embedding_norm,
            ("model", "decoder_layer") => !self.model.decoder_layer.is_attention(),
            ("model", "surround_text") => self.model.surround_text,
            ("model", "pooler") => self.model.pooler,
            ("model", "label_bias") => self.model.label_bias,
            ("vocabulary", "add_tokens") => self.vocabulary.add_tokens.is_some(),
            ("model", "init_checksum") => self.model.init_checksum.is_some(),
            ("training", "freeze") => !self.training.freeze.is_empty(),
            ("training", "r_drop_alpha") => self.training.r_drop_alpha.is_some(),
            ("vocabulary", "coverage") => self.vocabulary.coverage != Recipe::default().vocabulary.coverage,
            ("training", "cooldown") => self.training.schedule == ScheduleKind::Trapezoid,
            ("training", "decayed") => self.training.weight_decay != 0.0,
            (section, _) => ["data", "vocabulary", "model", "training"].contains(&section),
        };
        let mut text = String::new();
        for key in Recipe::keys().filter(is_included) {
            // Under the names that the keys had first, so that older runs keep their fingerprints.
            let name = key.former_name().unwrap_or(key.name);
            writeln!(text, "{}.{name} = {}", key.section, key.value(self))
                .expect("a string takes everything");
        }
        format!("{:016x}", XxHash3_64::oneshot(text.as_bytes()))
    }

    /// The keys whose values differ between two recipes, with both values.
    #[doc(hidden)]
    pub(crate) fn differences(&self, other: &Recipe) -> Vec<(&'static Key, Literal, Literal)> {
        let both = |key: &'static Key| (key, key.value(self), key.value(other));
        Recipe::keys().map(both).filter(|(_, ours, theirs)| ours != theirs).collect()
    }
}

/// The f64 with the same shortest decimal representation as this f32: 0.1, not 0.10000000149.
pub(crate) fn in_decimals(value: f32) -> f64 {
    value.to_string().parse().expect("a number is written as one")
}
