//! Keys whose values are names.

use std::fmt;

use heedful_tensor::DType;
use heedful_tensor::ops::{Activation, Cell};
use serde::{Deserialize, Serialize};

use super::setting::choices;
use crate::data::OverLong;
use crate::data::corpus::Duplicates;
use crate::data::tokenizer::{Boundaries, NormalizationForm, Sharing, VocabularyKind};
use crate::layers::{Norm, Score, Tying};
use crate::registry::{for_each_family, for_each_task};

/// A model and its training as others have found them good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// For trying things out.
    Tiny,
    /// For a few processor cores.
    #[default]
    Small,
    /// For corpora of some hundred thousand sentences.
    Iwslt,
    /// The paper's base model.
    Base,
    /// The paper's big model.
    Big,
}

macro_rules! families {
    ($($(#[$doc:meta])* $module:ident: $Family:ident = $name:literal,)+) => {
        /// What models are made of.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Family {
            #[default]
            $($(#[$doc])* $Family,)+
        }

        choices!(Family { $($name => Family::$Family,)+ });

        impl fmt::Display for Family {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Family::$Family => $name,)+ })
            }
        }
    };
}

macro_rules! tasks {
    ($($(#[$doc:meta])* $module:ident: $Task:ident = $name:literal,)+) => {
        /// What a model is trained for.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Task {
            #[default]
            $($(#[$doc])* $Task,)+
        }

        choices!(Task { $($name => Task::$Task,)+ });

        impl fmt::Display for Task {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Task::$Task => $name,)+ })
            }
        }
    };
}

for_each_family!(families);
for_each_task!(tasks);

/// How a recurrent decoder attends to the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttentionKind {
    /// Not at all: one vector has to hold the whole sentence.
    None,
    /// To every position, with weights.
    #[default]
    Soft,
    /// To one position; learns by the score function.
    Hard,
    /// To one position; learns as if it were soft.
    StraightThrough,
}

/// The shape of the learning rate; [`crate::train::Schedule`] has the formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleKind {
    /// The paper's.
    Noam,
    /// The same curve with its top named.
    InverseSqrt,
    /// Half a cosine.
    Cosine,
    /// Always the same.
    Constant,
}

/// How positions are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionKind {
    /// Sines and cosines.
    Sinusoidal,
    /// A learned table.
    Learned,
    /// Not at all.
    None,
}

/// What the best validation is chosen by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BestBy {
    /// The validation loss: lower is better.
    Loss,
    /// BLEU of the validation set's translations: higher is better.
    Bleu,
    /// The share of tokens or labels that the model predicts correctly: higher is better.
    Accuracy,
}

/// How a text becomes one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// The mean of its tokens' vectors, weighted by attention.
    #[default]
    Attention,
    /// The vector of a `<bos>` before the text.
    First,
}

/// Which checkpoints make the final model together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Averaging {
    /// The best one alone.
    None,
    /// The best ones.
    Best,
    /// The last ones.
    Last,
}

choices!(Preset {
    "tiny" => Preset::Tiny, "small" => Preset::Small, "iwslt" => Preset::Iwslt, "base" => Preset::Base,
    "big" => Preset::Big,
});
choices!(AttentionKind {
    "none" => AttentionKind::None, "soft" => AttentionKind::Soft, "hard" => AttentionKind::Hard,
    "straight-through" => AttentionKind::StraightThrough,
});
choices!(Cell { "simple" => Cell::Simple, "gru" => Cell::Gru, "lstm" => Cell::Lstm });
choices!(VocabularyKind {
    "bpe" => VocabularyKind::Bpe, "unigram" => VocabularyKind::Unigram, "word" => VocabularyKind::Word,
    "character" => VocabularyKind::Character,
});
choices!(Sharing { "joint" => Sharing::Joint, "separate" => Sharing::Separate });
choices!(NormalizationForm {
    "none" => NormalizationForm::None, "nfc" => NormalizationForm::Nfc, "nfkc" => NormalizationForm::Nfkc,
});
choices!(Boundaries { "words" => Boundaries::Words, "spaces" => Boundaries::Spaces });
choices!(OverLong { "filter" => OverLong::Filter, "cut" => OverLong::Cut });
choices!(Duplicates { "keep" => Duplicates::Keep, "drop" => Duplicates::Drop });
choices!(ScheduleKind {
    "noam" => ScheduleKind::Noam, "inverse-sqrt" => ScheduleKind::InverseSqrt, "cosine" => ScheduleKind::Cosine,
    "constant" => ScheduleKind::Constant,
});
choices!(PositionKind {
    "sinusoidal" => PositionKind::Sinusoidal, "learned" => PositionKind::Learned, "none" => PositionKind::None,
});
choices!(Averaging { "none" => Averaging::None, "best" => Averaging::Best, "last" => Averaging::Last });
choices!(Norm { "post" => Norm::Post, "pre" => Norm::Pre });
choices!(Activation { "relu" => Activation::Relu, "gelu" => Activation::Gelu, "identity" => Activation::Identity });
choices!(Tying {
    "all" => Tying::All, "source-target" => Tying::SourceTarget, "target-output" => Tying::TargetOutput,
    "none" => Tying::None,
});
choices!(Score {
    "scaled-dot" => Score::ScaledDot, "dot" => Score::Dot, "additive" => Score::Additive, "general" => Score::General,
});
choices!(DType { "bf16" => DType::Bf16, "f32" => DType::F32 });
choices!(BestBy { "loss" => BestBy::Loss, "bleu" => BestBy::Bleu, "accuracy" => BestBy::Accuracy });
choices!(Pooling { "attention" => Pooling::Attention, "first" => Pooling::First });
