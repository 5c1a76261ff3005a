//! Files: [`durable`] ones that are there whole or not at all, and [`weights`], numbers by name in safetensors.

pub mod durable;
pub mod weights;
