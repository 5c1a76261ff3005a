//! One sentence as pictures: what an [`Explanation`](super::Explanation) holds, drawn.
//!
//! ```text
//! matrix   one layer, one head or their mean: what was said × what was looked at
//! lines    the same as lines between two rows of words
//! words    the same as text: the sentence once for each word that was said, shaded by where that word looked
//! grid     every layer × every head, small
//! ```
//!
//! On the level of words, a word of several tokens looks as its tokens do on average and is looked at as much as its
//! tokens together: rows still sum to 1.

mod choice;
mod grid;
mod matrix;
mod words;

pub use choice::{HeadChoice, LayerChoice, ViewError};
pub use grid::grid_svg;
pub use matrix::{Level, Matrix};
pub use words::words_svg;
