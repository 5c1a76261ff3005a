//! The scope of a key: the runs that use it. Setting an unused key is an error.
//!
//! ```text
//! ALL                    every run
//! DECLARED               runs of the tasks and families that list it (`tasks/*/recipe.rs`, `models/*/recipe.rs`)
//! ….when(&[condition])   only if other keys have certain values
//! ```

use heedful_tensor::ops::ScoreForm;

use super::{
    AttentionKind, Averaging, Balance, EncoderKind, Family, Key, Pooling, PositionKind, Recipe,
    RecurrentNorm, ScheduleKind, find_key,
};
use crate::data::tokenizer::VocabularyKind;

/// The runs that use a key.
#[derive(Debug)]
pub(crate) struct Scope {
    /// Whether it is used only by the tasks and families that list it.
    pub(crate) is_declared: bool,
    pub(crate) conditions: &'static [Condition],
}

/// A condition on another key.
#[derive(Debug)]
pub(crate) struct Condition {
    /// The other key.
    key: &'static str,
    /// The purpose of the conditional key, for error messages.
    purpose: &'static str,
    holds: fn(&Recipe) -> bool,
}

pub(super) const ALL: Scope = Scope { is_declared: false, conditions: &[] };
pub(super) const DECLARED: Scope = Scope { is_declared: true, conditions: &[] };

/// A condition on `key`.
const fn on(key: &'static str, purpose: &'static str, holds: fn(&Recipe) -> bool) -> Condition {
    Condition { key, purpose, holds }
}

impl Scope {
    pub(super) const fn when(self, conditions: &'static [Condition]) -> Scope {
        Scope { conditions, ..self }
    }
}

impl Key {
    /// Why the values of other keys make this key ineffective, as a clause for an error message.
    pub(crate) fn contradiction(&self, recipe: &Recipe) -> Option<String> {
        let Condition { key, purpose, .. } =
            self.scope.conditions.iter().find(|condition| !(condition.holds)(recipe))?;
        let other = find_key(key).expect("conditions name keys");
        Some(format!("{} is for {purpose}, and {key} is {}", self.path(), other.value(recipe)))
    }
}

pub(super) const WARMS_UP: Condition =
    on("training.schedule", "the schedules noam, inverse-sqrt, cosine and trapezoid", |recipe| {
        recipe.training.schedule != ScheduleKind::Constant
    });
pub(super) const HAS_PEAK: Condition =
    on("training.schedule", "the schedules inverse-sqrt, cosine, trapezoid and constant", |recipe| {
        recipe.training.schedule != ScheduleKind::Noam
    });
pub(super) const NOAM: Condition =
    on("training.schedule", "the schedule noam", |recipe| recipe.training.schedule == ScheduleKind::Noam);
pub(super) const ENDS: Condition = on("training.schedule", "the schedules cosine and trapezoid", |recipe| {
    recipe.training.schedule.has_end()
});
pub(super) const TRAPEZOID: Condition = on("training.schedule", "the schedule trapezoid", |recipe| {
    recipe.training.schedule == ScheduleKind::Trapezoid
});
pub(super) const DECAYS: Condition =
    on("training.weight_decay", "weight decay", |recipe| recipe.training.weight_decay > 0.0);
pub(super) const LEARNED_POSITIONS: Condition =
    on("model.positions", "learned positions", |recipe| recipe.model.positions == PositionKind::Learned);
pub(super) const ATTENDS: Condition =
    on("model.attention", "decoders with attention", |recipe| recipe.model.attention != AttentionKind::None);
pub(super) const ADDITIVE: Condition =
    on("model.score", "the additive score", |recipe| recipe.model.score.form() == ScoreForm::Additive);
pub(super) const RECURRENT_ENCODER: Condition =
    on("model.encoder", "recurrent encoders", |recipe| recipe.model.encoder == EncoderKind::Recurrent);
pub(super) const CONVOLUTIONAL_ENCODER: Condition = on("model.encoder", "convolutional encoders", |recipe| {
    recipe.model.family != Family::Recurrent || recipe.model.encoder == EncoderKind::Convolutional
});
pub(super) const RECURRENT_NORM: Condition = on("model.recurrent_norm", "layers with a norm", |recipe| {
    let model = &recipe.model;
    let is_balanced = model.encoder == EncoderKind::Convolutional && model.balance == Balance::Norm;
    model.family != Family::Recurrent || model.recurrent_norm != RecurrentNorm::None || is_balanced
});
pub(super) const BALANCE_NORM: Condition = on("model.balance", "convolutions with a norm", |recipe| {
    recipe.model.family != Family::Convolutional || recipe.model.balance == Balance::Norm
});
pub(super) const HARD: Condition =
    on("model.attention", "hard attention", |recipe| recipe.model.attention == AttentionKind::Hard);
pub(super) const POOLS_BY_ATTENTION: Condition =
    on("model.pooling", "attention pooling", |recipe| recipe.model.pooling == Pooling::Attention);
pub(super) const SUBWORDS: Condition = on("vocabulary.kind", "subwords (bpe and unigram)", |recipe| {
    matches!(recipe.vocabulary.kind, VocabularyKind::Bpe | VocabularyKind::Unigram)
});
const NO_FILE: Condition =
    on("vocabulary.file", "vocabularies that are learned", |recipe| recipe.vocabulary.file.is_none());
const NO_SOURCE_FILE: Condition = on("vocabulary.source_file", "vocabularies that are learned", |recipe| {
    recipe.vocabulary.source_file.is_none()
});
const NO_TARGET_FILE: Condition = on("vocabulary.target_file", "vocabularies that are learned", |recipe| {
    recipe.vocabulary.target_file.is_none()
});
const NO_PRETRAINED_VOCABULARY: Condition =
    on("model.init_from", "vocabularies that are learned", |recipe| recipe.model.init_from.is_none());
pub(super) const LEARNED: &[Condition] = &[NO_FILE, NO_SOURCE_FILE, NO_TARGET_FILE, NO_PRETRAINED_VOCABULARY];
pub(super) const LEARNED_SUBWORDS: &[Condition] =
    &[SUBWORDS, NO_FILE, NO_SOURCE_FILE, NO_TARGET_FILE, NO_PRETRAINED_VOCABULARY];
pub(super) const FROM_SCRATCH: Condition =
    on("model.init_from", "models trained from scratch", |recipe| recipe.model.init_from.is_none());
pub(super) const PRETRAINED: Condition =
    on("model.init_from", "models that start from another", |recipe| recipe.model.init_from.is_some());
pub(super) const LINES: Condition =
    on("data.block", "texts of one line", |recipe| recipe.data.block.is_none());
pub(super) const HAS_MAX_TOKENS: Condition =
    on("data.max_tokens", "a maximum of tokens", |recipe| recipe.data.max_tokens.is_some());
pub(super) const BY_STEPS: Condition =
    on("validation.every_time", "validations by steps", |recipe| recipe.validation.every_time.is_none());
pub(super) const BLEU: Condition =
    on("validation.bleu", "validations with BLEU", |recipe| recipe.validation.bleu);
pub(super) const WIDE_BEAM: Condition =
    on("search.beam", "beams of more than one hypothesis", |recipe| recipe.search.beam > 1);
pub(super) const AVERAGES: Condition = on("checkpoint.average", "averages of checkpoints", |recipe| {
    recipe.checkpoint.average != Averaging::None
});
