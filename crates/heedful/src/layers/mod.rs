//! The layers that all models share. A layer owns named parameters, and its `forward` is its formula.

mod heads;
mod pass;

mod embedding;
mod linear;
mod norm;
mod position;
mod score;
mod tying;

pub use embedding::Embedding;
pub use heads::{HeadError, HeadName};
pub use linear::Linear;
pub use norm::{LayerNorm, Norm, Residual};
pub use pass::{AttentionMap, AttentionRole, AttentionSite, Pass, TooManyWeights};
pub use position::{PositionalEncoding, Positions};
pub(crate) use score::ScoreName;
pub use score::{AttentionScore, Scorer};
pub use tying::Tying;
pub(crate) use tying::embedding_tables;
