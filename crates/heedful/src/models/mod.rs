//! Encoders, decoders and encoder-decoders, in three families. What a model is trained for is defined by the
//! [tasks](crate::tasks), not here.
//!
//! 1. [`Model`], [`Generate`], [`Label`] and [`Encode`] are the abilities of models.
//! 2. [`transformer`] is "Attention Is All You Need", section 3. [`recurrent`] networks are what it replaced,
//!    [`convolution`] was proposed between them.
//! 3. [`EncoderDecoderConfig`] and [`EncoderConfig`] configure a model of any family.

mod hand_over;

mod model;

mod device;

pub(crate) mod config;
pub(crate) mod family;
pub(crate) mod sources;

pub(crate) mod cached_sources;
pub(crate) mod row_space;

pub mod convolution;
pub mod recurrent;
pub mod transformer;

mod any;

pub use crate::layers::{HeadError, HeadName};
pub use any::{EncoderConfig, EncoderDecoderConfig};
pub use config::ConfigError;
pub(crate) use device::default_precision;
pub use device::{ChosenDevice, DeviceChoice};
pub use hand_over::HandOver;
pub use hand_over::HandedOver;
pub use model::Restrict;
pub use model::{BrokenModel, Decoding, Encode, Generate, Label, Model, Row, Wanted};
