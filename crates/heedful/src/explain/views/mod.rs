//! Pictures of an [`Explanation`](super::Explanation).
//!
//! ```text
//! matrix   one layer, one head or their mean: queries × keys
//! lines    the same weights as lines between two rows of words
//! words    the source text once per output word, shaded by that word's attention
//! grid     a small matrix for every layer and head
//! ```
//!
//! For words of several tokens, rows are averaged and columns are summed over the tokens, so rows still sum
//! to 1.

mod choice;
mod grid;
mod matrix;
mod words;

pub use choice::{HeadChoice, ViewError};
pub use choice::{LayerChoice, NamedHead};
pub use grid::grid_svg;
pub use matrix::{AttentionMatrix, Granularity};
pub use words::words_svg;
