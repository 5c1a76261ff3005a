//! Models whose states a pass can record and replace: those made of Transformer blocks.

use heedful_tensor::Tensor;

use super::Model;
use crate::data::batch::Batch;
use crate::layers::{Pass, StackSide};

/// A model of Transformer blocks. A pass records and replaces the states of its
/// [residual stream](crate::layers::StateSite).
///
/// | model | a prediction |
/// |---|---|
/// | translator, language model | the next token at each position of the batch's targets |
/// | classifier | the label of each text |
/// | masked language model | the token at each `<mask>` of the batch's sources |
pub trait Inspect: Model {
    /// Its stacks in the order of computation, each with its number of blocks. Predictions are made from the
    /// last.
    fn stacks(&self) -> Vec<(StackSide, usize)>;

    /// The logits of some predictions, which are numbered through all sequences of the batch: predictions ×
    /// classes. They have a gradient if the pass records one.
    fn logits_at(&self, batch: &Batch, predictions: &[usize], pass: &mut Pass) -> Tensor;
}
