//! Recurrent networks: what the Transformer replaced, and what it is held against.
//!
//! 1. [`RecurrentLayer`] reads sequences in one direction; [`RecurrentStack`] piles up layers, in one direction or both.
//! 2. [`Seq2Seq`] is the encoder-decoder without attention: all that the decoder knows of a sentence is one vector.

mod config;
mod layer;
mod stack;

mod incremental;
mod seq2seq;

pub use config::{Directions, RecurrentConfig, StackConfig};
pub use heedful_tensor::ops::{Cell, Direction, Recurrent, RecurrentState};
pub use layer::RecurrentLayer;
pub use seq2seq::{Memory, Seq2Seq};
pub use stack::{RecurrentStack, StackOutput};
