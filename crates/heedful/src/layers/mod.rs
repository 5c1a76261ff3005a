//! The layers that all models share. A layer owns named parameters, and its `forward` is its formula.

mod attention_map;
mod heads;
mod masks;
mod pass;
mod recording;

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
pub use attention_map::{AttentionMap, AttentionRole, AttentionSite};
pub use batch_norm::{BatchNorm, BatchStatistics};
pub use embedding::Embedding;
pub use heads::{HeadError, HeadName, LayerName, MalformedLayer};
pub use linear::Linear;
pub use masks::{AttentionMask, MaskFault};
pub use norm::{LayerNorm, Norm, NormKind, Normalization, Residual};
pub use output::OutputProjection;
pub use pass::Pass;
pub use position::{Halves, PositionalEncoding, Positions};
pub use recording::TooManyWeights;
pub(crate) use score::ScoreName;
pub use score::{AttentionScore, Scorer};
pub use tying::Tying;
pub(crate) use tying::embedding_tables;
