//! Sentences that go from one decoding to another while they are decoded: what is kept of them moves, to the bit.

use heedful_tensor::{Ragged, Tensor};

/// A decoding whose sentences another one of the same model can take over.
pub trait HandOver {
    /// Gives all of its sentences away: these, of which each had rows in the latest step, and others that are finished.
    fn hand_over(&mut self, sentences: &[usize]) -> HandedOver;

    /// Takes sentences over, in the same [step of the device](heedful_tensor::Device::send_step). They are numbered as if they had
    /// been read, and have rows in the next step. Their rows of the latest step come after its own: returns the place of the first.
    fn take_over(&mut self, handed: HandedOver) -> usize;
}

/// What a decoding has kept of sentences.
pub struct HandedOver {
    /// For each layer the keys and values of their source tokens.
    pub(crate) sources: Vec<Tensor>,
    /// Their source tokens.
    pub(crate) sequences: Ragged,
    /// For each layer the keys and values of their target tokens, in any order.
    pub(crate) targets: Vec<Tensor>,
    /// For each row of the latest step its target tokens, first to last: rows of `targets`.
    pub(crate) pasts: Vec<Vec<u32>>,
}
