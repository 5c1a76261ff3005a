//! Attention models that train, run and explain themselves.
//!
//! Read the modules in this order:
//!
//! 1. [`batch`] lays sentence pairs end to end; nothing is ever padded.
//! 2. [`layers`] are what every model shares: linear, embedding, position, norm, and the [`layers::Pass`] that
//!    carries what a forward pass must know besides numbers.
//! 3. [`transformer`] is "Attention Is All You Need", section 3, one file for each of its figures.
//! 4. [`train`] turns gradients into better parameters: the schedule, the optimizer, the trainer.
//! 5. [`decode`] turns a trained model into sentences.
//! 6. [`metrics`] says how good the sentences are: BLEU, chrF and TER as sacreBLEU computes them.
//!
//! Below it all is [`tensor`]: arrays, the gradient tape and the operations. Models of your own are made from the
//! same parts; `examples/custom_model.rs` makes one.

#![forbid(unsafe_code)]

pub mod batch;
pub mod decode;
pub mod layers;
pub mod metrics;
pub mod train;
pub mod transformer;

pub use heedful_tensor as tensor;
