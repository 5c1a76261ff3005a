//! Attention models that train, run and explain themselves.
//!
//! Read the modules in this order:
//!
//! 1. [`batch`] lays sentence pairs end to end; nothing is ever padded.
//! 2. [`text`] is where batches come from: corpora, vocabularies, the stream of token ids.
//! 3. [`layers`] are what every model shares: linear, embedding, position, norm, and the [`layers::Pass`] that
//!    carries what a forward pass must know besides numbers.
//! 4. [`model`] is the one interface between models and what trains, searches and explains.
//! 5. [`transformer`] is "Attention Is All You Need", section 3, one file for each of its figures.
//!    [`recurrent`] networks are what it replaced, [`convolution`] what was tried between them.
//!    Of its parts are made [`classify`], an encoder that gives texts a label, [`language`], a decoder that goes on
//!    with texts, and [`masked`], an encoder that fills gaps: what a model is for is its [`task`].
//! 6. [`family`] is what a model is made of, whichever it is.
//! 7. [`train`] turns gradients into better parameters: the schedule, the optimizer, the trainer.
//! 8. [`decode`] turns a trained model into sentences.
//! 9. [`folder`] keeps a model on disk; [`weights`] are its numbers by name, [`durable`] writes files whole or not at
//!    all.
//! 10. [`metrics`] judges translations: strings in, numbers out.
//! 11. [`grammar`] makes Chinese–English phrases to learn from, [`explain`] makes pictures of what was learned.
//! 12. [`compare`] puts layers and models side by side, as the paper's tables 1 and 3 do.
//! 13. [`translator`] is a model with its vocabularies, text in and text out: what programs use.
//!
//! Below it all is [`tensor`]: arrays, the gradient tape and the operations. Models of your own are made from the
//! same parts; `examples/custom_model.rs` makes one.

#![forbid(unsafe_code)]

mod registry;

pub mod store;

pub mod plot;

pub mod layers;

pub mod data;

pub mod recipe;

pub mod models;

pub mod metrics;

pub mod decode;

pub mod tasks;

pub mod explain;

pub mod train;

pub mod compare;

pub use heedful_tensor as tensor;
