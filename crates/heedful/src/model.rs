//! The one interface between models and the rest: training, decoding and explaining know a model only through it, so
//! there is one trainer and one search for all of them.
//!
//! ```text
//! training   loss(batch)
//! decoding   start → read(sources) → step(rows) → step(rows) → …
//! ```
//!
//! A step takes the newest token of every hypothesis and gives the scores of all tokens that may follow. Hypotheses
//! are rows; each names the row of the step before that it continues, so a search may drop, keep and multiply them as
//! it likes.

use heedful_tensor::ops::CrossEntropy;
use heedful_tensor::{DType, Params, Ragged, Tensor};

use crate::batch::{Batch, BatchError};
use crate::layers::Pass;
use crate::text::SpecialTokens;

/// A model that reads sources and says targets: translations, labels, the rest of a text.
pub trait Model: Send + Sync {
    /// Its parameters, to train, to save or to look at.
    fn params(&self) -> &Params;

    /// Whether it can read the batch.
    fn check(&self, batch: &Batch) -> Result<(), BatchError>;

    /// As [`Model::check`] for sources alone.
    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError>;

    /// How far it is from saying the batch's targets. A recording pass afterwards holds all attention weights.
    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy;

    /// How many predictions [`Model::loss`] is a mean over.
    fn predictions(&self, batch: &Batch) -> usize {
        batch.target_tokens()
    }

    /// The scores of every label for every source: sources × labels (f32). `None` from a model that says texts.
    fn label_scores(&self, _source: &[u32], _sequences: &Ragged, _pass: &mut Pass) -> Option<Tensor> {
        None
    }

    /// The most tokens that a target may have, `<bos>` counted and `<eos>` not; `None` if there is no limit.
    fn longest_target(&self) -> Option<usize>;

    /// The tokens that its targets begin and end with.
    fn special_tokens(&self) -> SpecialTokens {
        SpecialTokens::default()
    }

    /// Begins to decode, with matrix products in this type and no sentence yet.
    ///
    /// # Panics
    /// If it is a model without a decoder: one that classifies, or fills gaps.
    fn start(&self, compute: DType) -> Box<dyn Decoding + '_>;
}

impl<M: Model + ?Sized> Model for Box<M> {
    fn params(&self) -> &Params {
        (**self).params()
    }

    fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        (**self).check(batch)
    }

    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        (**self).check_source(source, sequences)
    }

    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
        (**self).loss(batch, pass)
    }

    fn predictions(&self, batch: &Batch) -> usize {
        (**self).predictions(batch)
    }

    fn label_scores(&self, source: &[u32], sequences: &Ragged, pass: &mut Pass) -> Option<Tensor> {
        (**self).label_scores(source, sequences, pass)
    }

    fn longest_target(&self) -> Option<usize> {
        (**self).longest_target()
    }

    fn special_tokens(&self) -> SpecialTokens {
        (**self).special_tokens()
    }

    fn start(&self, compute: DType) -> Box<dyn Decoding + '_> {
        (**self).start(compute)
    }
}

/// Sentences being decoded: what was read of the sources, and the past of every hypothesis.
///
/// What a row gives depends on its sentence and its past alone, to the bit, and on no other row.
pub trait Decoding {
    /// Reads more sources, laid end to end, which the model has checked. Sentences are numbered from 0 on in the order
    /// in which they are read.
    fn read(&mut self, source: &[u32], sequences: &Ragged);

    /// Appends a token to each row's past: rows × vocabulary scores (f32) of what comes next. A sentence that had rows
    /// in an earlier step and has none in this one is over: what is known of it may be forgotten.
    fn step(&mut self, rows: &[Row]) -> Tensor;
}

/// A hypothesis at one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Which sentence it translates.
    pub sentence: usize,
    /// Which row of the step before it continues; `None` for the first token of a sentence.
    pub parent: Option<usize>,
    /// Its newest token.
    pub token: u32,
}
