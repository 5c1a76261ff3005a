//! The enums of keys whose values are names.

use std::fmt;

use heedful_tensor::DType;
use heedful_tensor::ops::{Activation, Cell, Direction, WeightDecayScope};
use serde::{Deserialize, Serialize};

use super::Literal;
use super::setting::{Setting, choices};
use crate::data::OverLong;
use crate::data::corpus::Duplicates;
use crate::data::tokenizer::{Boundaries, NormalizationForm, Sharing, VocabularyKind};
use crate::layers::{AttentionScore, Norm, NormKind, Tying};
use crate::registry::{for_each_family, for_each_task};

/// A named set of defaults for a model and its training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// For experiments that take seconds.
    Tiny,
    /// For a few CPU cores.
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
        /// The family of a model.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Family {
            #[default]
            $($(#[$doc])* $Family,)+
        }

        choices!(Family { $($name => Family::$Family,)+ });

        impl Family {
            /// All of them.
            pub const ALL: [Family; [$($name),+].len()] = [$(Family::$Family),+];
        }

        impl fmt::Display for Family {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Family::$Family => $name,)+ })
            }
        }
    };
}

macro_rules! tasks {
    ($($(#[$doc:meta])* $module:ident: $Task:ident = $name:literal,)+) => {
        /// The task of a model.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Task {
            #[default]
            $($(#[$doc])* $Task,)+
        }

        choices!(Task { $($name => Task::$Task,)+ });

        impl Task {
            /// All of them.
            pub const ALL: [Task; [$($name),+].len()] = [$(Task::$Task),+];
        }

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
    /// No attention: one vector represents the whole source.
    None,
    /// The weighted mean of all positions.
    #[default]
    Soft,
    /// One position; trained by the score-function estimator (REINFORCE).
    Hard,
    /// One position; trained by the straight-through estimator.
    StraightThrough,
}

/// When a recurrent decoder attends to the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttentionOrder {
    /// Before the step: the query is the state before it, the context enters the step (Bahdanau et al.,
    /// 2015).
    #[default]
    Before,
    /// After the step: the query is the new state, the context joins it in the readout (Luong et al., 2015).
    After,
    /// After the step; the readout is also an input of the next step: Luong's input feeding.
    Feeding,
}

/// The directions of a recurrent encoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Directions {
    /// From the first token to the last.
    Forward,
    /// Both, `[h→ ; h←]`: an output depends on the tokens before and after its own.
    #[default]
    Both,
}

impl Directions {
    /// The directions, in the order of their outputs.
    pub fn list(self) -> &'static [Direction] {
        match self {
            Directions::Forward => &[Direction::Forward],
            Directions::Both => &[Direction::Forward, Direction::Backward],
        }
    }
}

/// The norm over the output of every recurrent layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecurrentNorm {
    /// Nothing.
    #[default]
    None,
    /// A layer norm.
    Layer,
}

/// The normalization of residual sums, which keeps their variance constant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Balance {
    /// `(x + y) √½`, as in the paper: if both terms have unit variance, so does the sum.
    #[default]
    Scale,
    /// `LayerNorm(x + y)`.
    Norm,
}

/// The activation after a convolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConvolutionKind {
    /// A gate: `a ∘ σ(g)` of a convolution to twice the width (Dauphin et al., 2017).
    #[default]
    Gated,
    /// `max(0, x)`.
    Relu,
}

impl fmt::Display for ConvolutionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConvolutionKind::Gated => "gated",
            ConvolutionKind::Relu => "ReLU",
        })
    }
}

/// The encoder of a recurrent decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncoderKind {
    /// Recurrent layers.
    #[default]
    Recurrent,
    /// Convolutions.
    Convolutional,
}

/// The learning rate schedule; [`crate::train::Schedule`] has the formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleKind {
    /// The schedule of the paper.
    Noam,
    /// The same curve with a given peak.
    InverseSqrt,
    /// Half a cosine after the warmup.
    Cosine,
    /// Constant after the warmup, then linear to the floor in the last steps.
    Trapezoid,
    /// A constant rate.
    Constant,
}

impl ScheduleKind {
    /// Whether the rate depends on the last step.
    pub(crate) fn has_end(self) -> bool {
        matches!(self, ScheduleKind::Cosine | ScheduleKind::Trapezoid)
    }
}

/// The position encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionKind {
    /// Sines and cosines.
    Sinusoidal,
    /// Sines before cosines, as in MarianMT.
    MarianMt,
    /// Sines before cosines, as in Marian.
    Marian,
    /// Sines before cosines, as in OpenNMT.
    OpenNmt,
    /// A learned table.
    Learned,
    /// No positional encoding.
    None,
}

/// The autoregressive layer of a Transformer decoder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DecoderLayer {
    /// Causal self attention.
    #[default]
    Attention,
    /// The simpler simple recurrent unit (Kim et al., 2019), as in Marian's small and fast models.
    Ssru,
}

impl DecoderLayer {
    /// Whether it is the default.
    pub(crate) fn is_attention(&self) -> bool {
        *self == DecoderLayer::Attention
    }
}

/// The metric that selects the best model.
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

/// How token vectors are pooled into one vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pooling {
    /// The mean of its tokens' vectors, weighted by attention.
    #[default]
    Attention,
    /// The vector of a `<bos>` before the text.
    First,
    /// The vector of the last token; for a bidirectional network, the last state of each direction.
    Last,
    /// The mean of its tokens' vectors.
    Mean,
    /// The elementwise maximum of its tokens' vectors.
    Max,
}

/// Which checkpoints are averaged into the final model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Averaging {
    /// None: the final model is the best checkpoint.
    None,
    /// The best checkpoints.
    Best,
    /// The last checkpoints.
    Last,
}

/// Which of the kept checkpoints have the optimizer state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptState {
    /// The latest: two while a run trains, one when it has finished.
    Latest,
    /// All.
    All,
}

choices!(Preset {
    "tiny" => Preset::Tiny, "small" => Preset::Small, "iwslt" => Preset::Iwslt, "base" => Preset::Base,
    "big" => Preset::Big,
});
choices!(AttentionKind {
    "none" => AttentionKind::None, "soft" => AttentionKind::Soft, "hard" => AttentionKind::Hard,
    "straight-through" => AttentionKind::StraightThrough,
});
choices!(AttentionOrder {
    "before" => AttentionOrder::Before, "after" => AttentionOrder::After, "feeding" => AttentionOrder::Feeding,
});
choices!(RecurrentNorm { "none" => RecurrentNorm::None, "layer" => RecurrentNorm::Layer });
choices!(ConvolutionKind { "gated" => ConvolutionKind::Gated, "relu" => ConvolutionKind::Relu });
choices!(EncoderKind { "recurrent" => EncoderKind::Recurrent, "convolutional" => EncoderKind::Convolutional });
choices!(Balance { "scale" => Balance::Scale, "norm" => Balance::Norm });
choices!(Directions { "forward" => Directions::Forward, "both" => Directions::Both });
choices!(WeightDecayScope { "matrices" => WeightDecayScope::Matrices, "all" => WeightDecayScope::All });
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
    "trapezoid" => ScheduleKind::Trapezoid, "constant" => ScheduleKind::Constant,
});
choices!(PositionKind {
    "sinusoidal" => PositionKind::Sinusoidal, "learned" => PositionKind::Learned, "none" => PositionKind::None;
    "marian-mt" => PositionKind::MarianMt, "marian" => PositionKind::Marian, "opennmt" => PositionKind::OpenNmt,
});
choices!(DecoderLayer { "attention" => DecoderLayer::Attention, "ssru" => DecoderLayer::Ssru });
choices!(Averaging { "none" => Averaging::None, "best" => Averaging::Best, "last" => Averaging::Last });
choices!(KeptState { "latest" => KeptState::Latest, "all" => KeptState::All });
choices!(NormKind { "layer" => NormKind::Layer, "batch" => NormKind::Batch });
choices!(Norm { "post" => Norm::Post, "pre" => Norm::Pre });
choices!(Activation {
    "relu" => Activation::Relu, "gelu" => Activation::Gelu, "gelu-tanh" => Activation::GeluTanh,
    "silu" => Activation::Silu, "identity" => Activation::Identity,
});
choices!(Tying {
    "all" => Tying::All, "source-target" => Tying::SourceTarget, "target-output" => Tying::TargetOutput,
    "none" => Tying::None,
});
choices!(DType { "bf16" => DType::Bf16, "f32" => DType::F32 });
choices!(BestBy { "loss" => BestBy::Loss, "bleu" => BestBy::Bleu, "accuracy" => BestBy::Accuracy });
choices!(Pooling {
    "attention" => Pooling::Attention, "first" => Pooling::First, "last" => Pooling::Last, "mean" => Pooling::Mean,
    "max" => Pooling::Max,
});

impl Setting for AttentionScore {
    const EXPECTS: &'static str = "the name of a score, such as `scaled-dot`, `dot`, `additive` or `general`";
    const VALUE_NAME: &'static str = "NAME";

    fn read(literal: &Literal) -> Option<AttentionScore> {
        match literal {
            Literal::Text(name) => AttentionScore::from_name(name),
            _ => None,
        }
    }

    fn literal(&self) -> Literal {
        Literal::Text(self.name().to_owned())
    }
}
