//! What a key is for. A value that nothing reads is an error, so every key says here who reads it.
//!
//! ```text
//! ALL                    every run
//! DECLARED               the tasks and families that list it (`tasks/*/recipe.rs`, `models/*/recipe.rs`)
//! ….when(&[condition])   only if other keys have certain values
//! ```

use heedful_tensor::ops::ScoreForm;

use super::{
    AttentionKind, Averaging, Balance, EncoderKind, Family, Key, Pooling, PositionKind, Recipe,
    RecurrentNorm, ScheduleKind, find_key,
};
use crate::data::tokenizer::VocabularyKind;

/// Who reads a key.
#[derive(Debug)]
pub(crate) struct Scope {
    /// Whether only those read it who list it.
    pub(crate) is_declared: bool,
    pub(crate) conditions: &'static [Condition],
}

/// What another key must be for a key to be read.
#[derive(Debug)]
pub(crate) struct Condition {
    /// The other key.
    key: &'static str,
    /// What the key in question is for.
    purpose: &'static str,
    holds: fn(&Recipe) -> bool,
}

pub(super) const ALL: Scope = Scope { is_declared: false, conditions: &[] };
pub(super) const DECLARED: Scope = Scope { is_declared: true, conditions: &[] };

impl Scope {
    pub(super) const fn when(self, conditions: &'static [Condition]) -> Scope {
        Scope { conditions, ..self }
    }
}

impl Key {
    /// Why the values of other keys leave this one without effect: a clause for an error message.
    pub(crate) fn contradiction(&self, recipe: &Recipe) -> Option<String> {
        let Condition { key, purpose, .. } =
            self.scope.conditions.iter().find(|condition| !(condition.holds)(recipe))?;
        let other = find_key(key).expect("conditions name keys");
        Some(format!("{} is for {purpose}, and {key} is {}", self.path(), other.value(recipe)))
    }
}

pub(super) const WARMS_UP: Condition = Condition {
    key: "training.schedule",
    purpose: "the schedules noam, inverse-sqrt and cosine",
    holds: |recipe| recipe.training.schedule != ScheduleKind::Constant,
};
pub(super) const HAS_PEAK: Condition = Condition {
    key: "training.schedule",
    purpose: "the schedules inverse-sqrt, cosine and constant",
    holds: |recipe| recipe.training.schedule != ScheduleKind::Noam,
};
pub(super) const NOAM: Condition = Condition {
    key: "training.schedule",
    purpose: "the schedule noam",
    holds: |recipe| recipe.training.schedule == ScheduleKind::Noam,
};
pub(super) const COSINE: Condition = Condition {
    key: "training.schedule",
    purpose: "the schedule cosine",
    holds: |recipe| recipe.training.schedule == ScheduleKind::Cosine,
};
pub(super) const DECAYS: Condition = Condition {
    key: "training.weight_decay",
    purpose: "weight decay",
    holds: |recipe| recipe.training.weight_decay > 0.0,
};
pub(super) const LEARNED_POSITIONS: Condition = Condition {
    key: "model.positions",
    purpose: "learned positions",
    holds: |recipe| recipe.model.positions == PositionKind::Learned,
};
pub(super) const ATTENDS: Condition = Condition {
    key: "model.attention",
    purpose: "decoders with attention",
    holds: |recipe| recipe.model.attention != AttentionKind::None,
};
pub(super) const ADDITIVE: Condition = Condition {
    key: "model.score",
    purpose: "the additive score",
    holds: |recipe| recipe.model.score.form() == ScoreForm::Additive,
};
pub(super) const RECURRENT_ENCODER: Condition = Condition {
    key: "model.encoder",
    purpose: "recurrent encoders",
    holds: |recipe| recipe.model.encoder == EncoderKind::Recurrent,
};
pub(super) const CONVOLUTIONAL_ENCODER: Condition = Condition {
    key: "model.encoder",
    purpose: "convolutional encoders",
    holds: |recipe| {
        recipe.model.family != Family::Recurrent || recipe.model.encoder == EncoderKind::Convolutional
    },
};
pub(super) const RECURRENT_NORM: Condition = Condition {
    key: "model.recurrent_norm",
    purpose: "layers with a norm",
    holds: |recipe| {
        let model = &recipe.model;
        let is_balanced = model.encoder == EncoderKind::Convolutional && model.balance == Balance::Norm;
        model.family != Family::Recurrent || model.recurrent_norm != RecurrentNorm::None || is_balanced
    },
};
pub(super) const BALANCE_NORM: Condition = Condition {
    key: "model.balance",
    purpose: "convolutions with a norm",
    holds: |recipe| recipe.model.family != Family::Convolutional || recipe.model.balance == Balance::Norm,
};
pub(super) const HARD: Condition = Condition {
    key: "model.attention",
    purpose: "hard attention",
    holds: |recipe| recipe.model.attention == AttentionKind::Hard,
};
pub(super) const POOLS_BY_ATTENTION: Condition = Condition {
    key: "model.pooling",
    purpose: "attention pooling",
    holds: |recipe| recipe.model.pooling == Pooling::Attention,
};
pub(super) const SUBWORDS: Condition = Condition {
    key: "vocabulary.kind",
    purpose: "subwords (bpe and unigram)",
    holds: |recipe| matches!(recipe.vocabulary.kind, VocabularyKind::Bpe | VocabularyKind::Unigram),
};
const NO_FILE: Condition = Condition {
    key: "vocabulary.file",
    purpose: "vocabularies that are learned",
    holds: |recipe| recipe.vocabulary.file.is_none(),
};
const NO_SOURCE_FILE: Condition = Condition {
    key: "vocabulary.source_file",
    purpose: "vocabularies that are learned",
    holds: |recipe| recipe.vocabulary.source_file.is_none(),
};
const NO_TARGET_FILE: Condition = Condition {
    key: "vocabulary.target_file",
    purpose: "vocabularies that are learned",
    holds: |recipe| recipe.vocabulary.target_file.is_none(),
};
const NO_VOCABULARY_OF_A_MODEL: Condition = Condition {
    key: "model.init_from",
    purpose: "vocabularies that are learned",
    holds: |recipe| recipe.model.init_from.is_none(),
};
pub(super) const LEARNED: &[Condition] = &[NO_FILE, NO_SOURCE_FILE, NO_TARGET_FILE, NO_VOCABULARY_OF_A_MODEL];
pub(super) const LEARNED_SUBWORDS: &[Condition] =
    &[SUBWORDS, NO_FILE, NO_SOURCE_FILE, NO_TARGET_FILE, NO_VOCABULARY_OF_A_MODEL];
pub(super) const OWN_VOCABULARY: Condition = Condition {
    key: "model.init_from",
    purpose: "models that begin with weights of their own",
    holds: |recipe| recipe.model.init_from.is_none(),
};
pub(super) const STARTS_FROM_A_MODEL: Condition = Condition {
    key: "model.init_from",
    purpose: "models that start from another",
    holds: |recipe| recipe.model.init_from.is_some(),
};
pub(super) const LINES: Condition = Condition {
    key: "data.block",
    purpose: "texts of one line",
    holds: |recipe| recipe.data.block.is_none(),
};
pub(super) const HAS_MOST_TOKENS: Condition = Condition {
    key: "data.max_tokens",
    purpose: "a maximum of tokens",
    holds: |recipe| recipe.data.max_tokens.is_some(),
};
pub(super) const BY_STEPS: Condition = Condition {
    key: "validation.every_time",
    purpose: "validations by steps",
    holds: |recipe| recipe.validation.every_time.is_none(),
};
pub(super) const BLEU: Condition = Condition {
    key: "validation.bleu",
    purpose: "validations with BLEU",
    holds: |recipe| recipe.validation.bleu,
};
pub(super) const WIDE_BEAM: Condition = Condition {
    key: "search.beam",
    purpose: "beams of more than one hypothesis",
    holds: |recipe| recipe.search.beam > 1,
};
pub(super) const AVERAGES: Condition = Condition {
    key: "checkpoint.average",
    purpose: "averages of checkpoints",
    holds: |recipe| recipe.checkpoint.average != Averaging::None,
};
