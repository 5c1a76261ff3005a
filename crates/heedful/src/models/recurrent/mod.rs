//! Recurrent networks: what the Transformer replaced, and what it is held against.
//!
//! 1. [`RecurrentLayer`] reads sequences in one direction; [`RecurrentStack`] piles up layers, in one direction or both.
//! 2. [`Seq2Seq`] is the encoder-decoder. Without attention all that the decoder knows of a sentence is one vector; with it
//!    the decoder's first layer, an [`AttentiveLayer`], looks at the sentence before every step, softly or hard.

mod config;
mod layer;
mod stack;

mod attentive;
mod decoder;
mod hard;

mod decoding;
mod seq2seq;
mod text_encoder;

mod recipe;

pub use attentive::{AttentiveLayer, Seen};
pub use config::{Directions, Hardness, RecurrentAttention, RecurrentConfig, RecurrentStackConfig};
pub use heedful_tensor::ops::{Cell, Direction, Recurrent, RecurrentState};
pub use layer::RecurrentLayer;
pub use seq2seq::{Memory, Seq2Seq};
pub use stack::{RecurrentStack, StackOutput};
pub use text_encoder::{RecurrentEncoder, RecurrentEncoderConfig};
pub(crate) use {RecurrentConfig as EncoderDecoder, RecurrentEncoderConfig as Encoder};
