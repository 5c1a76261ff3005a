//! Files: [`durable`] writes them atomically; [`weights`] are matrices by name, as safetensors.

pub mod durable;
pub mod weights;
