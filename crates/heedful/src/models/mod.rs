//! What models are made of: encoders, decoders and what joins them, in three families. Nothing here knows what a model is
//! for; the [tasks](crate::tasks) do.
//!
//! 1. [`Model`], [`Generate`], [`Label`] and [`Encode`] say what a model can do.
//! 2. [`transformer`] is "Attention Is All You Need", section 3. [`recurrent`] networks are what it replaced,
//!    [`convolution`] what was tried between them.
//! 3. [`EncoderDecoderConfig`] and [`EncoderConfig`] are any of them, by name.

mod model;

pub(crate) mod config;
pub(crate) mod family;
pub(crate) mod sources;

pub mod convolution;
pub mod recurrent;
pub mod transformer;

mod any;

pub use any::{EncoderConfig, EncoderDecoderConfig};
pub use config::ConfigError;
pub use model::{BrokenModel, Decoding, Encode, Generate, Label, Model, Row};
