//! Translation, by an encoder-decoder of any family ([`Config`]).

mod translator;

mod recipe;
mod validation;

pub(crate) use recipe::Definition;
pub use translator::{Output, Translation, Translator};

pub use crate::models::EncoderDecoderConfig as Config;
