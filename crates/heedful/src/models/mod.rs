//! Encoders, decoders and encoder-decoders in three families. The [tasks](crate::tasks) define what a model
//! is trained for.
//!
//! 1. [`Model`], [`Generate`], [`Label`] and [`Encode`] are the traits that models implement.
//! 2. [`transformer`] is "Attention Is All You Need", section 3; [`recurrent`] networks (seq2seq) and
//!    [`convolution`] (ConvS2S) preceded it.
//! 3. [`EncoderDecoderConfig`] and [`EncoderConfig`] configure a model of any family.

mod migrate;

mod model;

mod inspect;

mod device;

pub(crate) mod config;
pub(crate) mod family;
pub(crate) mod sources;

pub(crate) mod cached_sources;
pub(crate) mod row_allocator;

pub mod convolution;
pub mod recurrent;
pub mod transformer;

mod any;

pub use crate::layers::{HeadError, HeadName};
pub use any::{EncoderConfig, EncoderDecoderConfig};
pub use config::ConfigError;
pub(crate) use device::default_precision;
pub use device::{ChosenDevice, DeviceChoice, PlacementError};
pub use inspect::Inspect;
pub use migrate::{DecoderState, Migrate};
pub use model::{BrokenModel, Decoding, Encode, Generate, Label, LogitsRequest, Model, Restrict, Row};
