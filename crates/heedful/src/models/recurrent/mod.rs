//! Recurrent networks: the encoder-decoders that preceded the Transformer.
//!
//! 1. `RecurrentLayer` reads sequences in one direction; [`RecurrentStack`] stacks layers, in one direction
//!    or both.
//! 2. [`Seq2Seq`] is the encoder-decoder. Without attention the decoder sees the source as a single vector.
//!    With attention, soft or hard, either the decoder's first layer (`AttentiveLayer`) attends to the source
//!    before every step, as in Bahdanau et al., or its top layer attends after it, as in Luong et al.
//!    ([`AttentionOrder`]).

mod config;
mod layer;
mod stack;

mod encoder;

mod attentive;

mod decoder;
mod luong;
mod reinforce;

mod decoding;
mod seq2seq;
mod text_decoder;
mod text_encoder;

mod recipe;

pub(crate) use attentive::{AttentiveLayer, SourceKeyValues};
pub use config::{
    AttentionOrder, ConvolutionalSource, Directions, Hardness, RecurrentAttention, RecurrentConfig,
    RecurrentStackConfig,
};
pub use heedful_tensor::ops::{Cell, Direction, Recurrent, RecurrentState};
pub(crate) use layer::RecurrentLayer;
pub use seq2seq::RecurrentMemory;
pub use seq2seq::Seq2Seq;
pub use stack::RecurrentStack;
pub use stack::StackOutput;
pub use text_decoder::RecurrentDecoderConfig;
pub(crate) use text_decoder::RecurrentStates;
pub(crate) use text_decoder::RecurrentTextDecoder;
pub(crate) use text_encoder::RecurrentEncoder;
pub use text_encoder::RecurrentEncoderConfig;
pub(crate) use {RecurrentConfig as EncoderDecoder, RecurrentEncoderConfig as Encoder};
