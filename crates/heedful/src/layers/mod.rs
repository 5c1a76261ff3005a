//! The layers that all models share. A layer owns named parameters, and its `forward` is its formula.

mod heads;
mod masks;
mod pass;

mod batch_norm;
mod embedding;
mod linear;
mod norm;
mod output;
mod position;
mod score;
mod tying;

pub use batch_norm::{BatchNorm, BatchStatistics};
pub use embedding::Embedding;
pub use heads::{HeadError, HeadName};
pub use linear::Linear;
pub use masks::{AttentionMask, MaskFault};
pub use norm::{LayerNorm, Norm, NormKind, Normalization, Residual};
pub use output::OutputProjection;
pub use pass::{AttentionMap, AttentionRole, AttentionSite, Pass, TooManyWeights};
pub use position::{PositionalEncoding, Positions};
pub(crate) use score::ScoreName;
pub use score::{AttentionScore, Scorer};
pub use tying::Tying;
pub(crate) use tying::embedding_tables;
