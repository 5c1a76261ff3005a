//! The layers that all models share. A layer owns named parameters, and its `forward` is its formula.

mod attention_map;
mod heads;
mod masks;
mod pass;
mod recording;
mod states;

mod attention;
mod batch_norm;
mod embedding;
mod linear;
mod norm;
mod output;
mod position;
mod score;
mod tying;

pub use attention::attention;
#[doc(hidden)]
pub use attention_map::AttentionSite;
pub use attention_map::{AttentionMap, AttentionRole};
#[doc(hidden)]
pub use batch_norm::{BatchNorm, BatchStatistics};
pub use embedding::Embedding;
#[doc(hidden)]
pub use heads::{HeadError, HeadName, LayerName, MalformedLayer};
pub use linear::Linear;
#[doc(hidden)]
pub use masks::{AttentionMask, MaskFault};
pub use norm::LayerNorm;
#[doc(hidden)]
pub use norm::{Norm, NormKind, Normalization, Residual};
#[doc(hidden)]
pub use output::OutputProjection;
pub use pass::Pass;
pub use position::PositionalEncoding;
#[doc(hidden)]
pub use position::{Halves, Positions};
#[doc(hidden)]
pub use recording::TooManyWeights;
pub(crate) use score::ScoreName;
#[doc(hidden)]
pub use score::{AttentionScore, Scorer};
#[doc(hidden)]
pub use states::{StackSide, StateSite, States};
#[doc(hidden)]
pub use tying::Tying;
pub(crate) use tying::embedding_tables;
