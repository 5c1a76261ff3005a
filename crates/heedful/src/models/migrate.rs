//! Migration of sentences from one decoding to another while they are decoded: their state moves bit for bit.

use heedful_tensor::{Ragged, Tensor};

/// A decoding that can export sentences to, and import them from, another decoding of the same model.
pub trait Migrate {
    /// Exports all of its unfinished sentences: `sentences` must list them, and each must have had rows in
    /// the latest step.
    fn export_state(&mut self, sentences: &[usize]) -> DecoderState;

    /// Imports sentences, in the same [step of the device](heedful_tensor::Device::send_step) as the export.
    /// They are numbered as if they had been read, and have rows in the next step. Their rows of the latest
    /// step follow its own; returns the index of the first of them.
    fn import_state(&mut self, state: DecoderState) -> usize;
}

/// The exported state of some sentences.
pub struct DecoderState {
    /// Keys and values of their source tokens, one tensor for each layer.
    pub(crate) sources: Vec<Tensor>,
    /// Where each sentence begins and ends in `sources`.
    pub(crate) sequences: Ragged,
    /// Keys and values of their target tokens in any order, one tensor for each layer.
    pub(crate) targets: Vec<Tensor>,
    /// For each row of the latest step, the rows of `targets` that hold its tokens, first to last.
    pub(crate) rows: Vec<Vec<u32>>,
}
