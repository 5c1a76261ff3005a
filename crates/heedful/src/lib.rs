//! Train, run, measure and explain attention models, from Bahdanau's to the Transformer.
//!
//! The modules in the order of their dependencies; each imports only from those above it:
//!
//! 1. [`system`] is what operating systems do differently: signals, limits, the identity of files.
//! 2. [`store`] writes files durably, and keeps weights by name (safetensors).
//! 3. [`plot`] draws heat maps and line charts as SVG and PNG, and writes reports.
//! 4. [`layers`] are shared by all models: linear, embedding, positional encoding, layer norm, attention scores, and the
//!    [`layers::Pass`] that every forward pass is given.
//! 5. [`data`] goes from files to batches: corpora, tokenizers, encoded corpora, batches of token ids without padding.
//! 6. [`recipe`] holds the settings of a training run: every key is declared once, for TOML, flags and help.
//! 7. [`models`] are encoders, decoders and encoder-decoders: [`models::transformer`] is "Attention Is All You Need",
//!    section 3; [`models::recurrent`] and [`models::convolution`] are the families before it.
//! 8. [`metrics`] scores translations and classifications.
//! 9. [`decode`] searches a trained model for its best outputs: beam search, sampling, forced decoding.
//! 10. [`tasks`] are what a model is trained for: [`tasks::translate`], [`tasks::classify`], [`tasks::language`] and
//!     [`tasks::masked`], each with a type that takes and returns text. [`tasks::folder`] is a model on disk.
//! 11. [`exchange`] imports models of other projects, and exports ours for them.
//! 12. [`explain`] shows what a model attends to, and what each head contributes.
//! 13. [`train`] is the training loop: schedule, optimizer, checkpoints, logs.
//! 14. [`compare`] measures layers and model variations side by side, as the paper's tables 1 and 3 do.
//!
//! Below them is [`tensor`]: arrays, the gradient tape and the operations. A model of your own is built from the same
//! parts; see `examples/custom_model.rs`.

#![forbid(unsafe_code)]

mod error;
mod registry;

pub use error::{Error, Result};

pub mod system;

pub mod store;

pub mod plot;

pub mod layers;

pub mod data;

pub mod recipe;

pub mod models;

pub mod metrics;

pub mod decode;

pub mod tasks;

pub mod exchange;

pub mod explain;

pub mod train;

pub mod compare;

pub use heedful_tensor as tensor;
