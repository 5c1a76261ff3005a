//! Pictures of an [`Explanation`](super::Explanation).
//!
//! ```text
//! matrix   one layer, one head or their mean: queries × keys
//! lines    the same as lines between two rows of words
//! words    the same as text: the source once for each word of the output, shaded by that word's attention
//! grid     every layer × every head, small
//! ```
//!
//! For words of several tokens, rows are averaged and columns are summed over the tokens: rows still sum to 1.

mod choice;
mod grid;
mod matrix;
mod words;

pub use choice::{HeadChoice, ViewError};
pub use choice::{LayerChoice, NamedHead};
pub use grid::grid_svg;
pub use matrix::{AttentionMatrix, Granularity};
pub use words::words_svg;
