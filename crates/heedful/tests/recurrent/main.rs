//! Recurrent models: layers against PyTorch, and an encoder-decoder that gives the same bits in any company.

#[path = "../support/mod.rs"]
mod support;

mod golden;
mod seq2seq;
