//! Keys whose values are names.

use heedful_tensor::DType;
use heedful_tensor::ops::{Activation, Cell};

use super::setting::choices;
use crate::data::OverLong;
use crate::data::corpus::Duplicates;
use crate::data::tokenizer::{Boundaries, Kind, Normalization, Sharing};
use crate::layers::{Norm, Score};
use crate::models::transformer::Tying;
use crate::tasks::Task;
use crate::tasks::classify::Pooling;
use crate::train::Metric;

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

/// The families of translators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Attention alone.
    #[default]
    Transformer,
    /// Recurrent networks, with or without attention between them.
    Recurrent,
    /// Gated convolutions, with attention in every decoder layer.
    Convolutional,
}

/// How a recurrent decoder looks at the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AttentionKind {
    /// Not at all: one vector has to hold the sentence.
    None,
    /// At everything, with weights.
    #[default]
    Soft,
    /// At one position; learns by the score function.
    Hard,
    /// At one position; learns as if it were soft.
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

/// How a word's place is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionKind {
    /// Sines and cosines.
    Sinusoidal,
    /// A learned table.
    Learned,
    /// Not at all.
    None,
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
choices!(Family {
    "transformer" => Family::Transformer, "recurrent" => Family::Recurrent, "convolutional" => Family::Convolutional,
});
choices!(AttentionKind {
    "none" => AttentionKind::None, "soft" => AttentionKind::Soft, "hard" => AttentionKind::Hard,
    "straight-through" => AttentionKind::StraightThrough,
});
choices!(Cell { "simple" => Cell::Simple, "gru" => Cell::Gru, "lstm" => Cell::Lstm });
choices!(Kind {
    "bpe" => Kind::Bpe, "unigram" => Kind::Unigram, "word" => Kind::Word,
    "character" => Kind::Character,
});
choices!(Sharing { "joint" => Sharing::Joint, "separate" => Sharing::Separate });
choices!(Normalization {
    "none" => Normalization::None, "nfc" => Normalization::Nfc, "nfkc" => Normalization::Nfkc,
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
choices!(Metric { "loss" => Metric::Loss, "bleu" => Metric::Bleu, "accuracy" => Metric::Accuracy });
choices!(Task {
    "translate" => Task::Translate, "classify" => Task::Classify, "lm" => Task::Lm, "mlm" => Task::Mlm,
});
choices!(Pooling { "attention" => Pooling::Attention, "first" => Pooling::First });
