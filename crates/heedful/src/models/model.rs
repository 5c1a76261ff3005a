//! What models can do, as traits: the trainer, the search and the rest know a model only by its abilities, so there is one
//! of each for all models, and nothing can be asked of a model that it cannot do.
//!
//! ```text
//! Model       params, check, loss            every model: it can be trained
//! Generate    start → read → step → step …   a decoder: it predicts token after token
//! Label       label_scores                   a classifier
//! Encode      encode                         part of a model: one vector for each token of a text
//! ```
//!
//! A decoding step takes the newest token of every hypothesis and gives the scores of all tokens that may follow.
//! Hypotheses are rows; each names the row of the step before that it continues, so a search may drop, keep and multiply
//! them as it likes.

use std::sync::Arc;

use heedful_tensor::ops::CrossEntropy;
use heedful_tensor::{DType, Params, Ragged, Tensor};

use crate::data::SpecialTokens;
use crate::data::batch::{Batch, BatchError};
use crate::layers::Pass;

/// A model that can be trained.
pub trait Model: Send + Sync {
    /// Its parameters, to train, to save or to look at.
    fn params(&self) -> &Params;

    /// Whether it can read the batch.
    fn check(&self, batch: &Batch) -> Result<(), BatchError>;

    /// The cross entropy of what the batch asks for. A recording pass afterwards holds all attention weights.
    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy;

    /// How many predictions [`Model::loss`] is a mean over.
    fn predictions(&self, batch: &Batch) -> usize {
        batch.target_tokens()
    }
}

/// A model that generates a target from a source, token by token: a translation, or how a text goes on.
pub trait Generate: Model {
    /// Whether it can read these sources, which are laid end to end.
    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError>;

    /// The most tokens that a target may have, `<bos>` counted and `<eos>` not; `None` if there is no limit.
    fn longest_target(&self) -> Option<usize>;

    /// The tokens that its targets begin and end with.
    fn special_tokens(&self) -> SpecialTokens {
        SpecialTokens::default()
    }

    /// Begins to decode, with matrix products in this type and no sentence yet.
    fn start(&self, compute: DType) -> Box<dyn Decoding + '_>;
}

/// A model that gives every text a score for every label.
pub trait Label: Model {
    /// Whether it can read these texts, which are laid end to end.
    fn check_text(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError>;

    /// texts × labels (f32).
    fn label_scores(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor;
}

/// A part of a model that reads texts: one vector for each token.
pub trait Encode: Send + Sync {
    /// Width of the vectors.
    fn width(&self) -> usize;

    /// Whether it can read these texts, which are laid end to end.
    fn check(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError>;

    /// One vector for each token: tokens × width.
    fn encode(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor;
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

/// A model whose parameters have gone astray: its scores are not numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "what the model predicts for sentence {sentence} is not a number: its parameters are broken, use those of an earlier \
     checkpoint"
)]
pub struct BrokenModel {
    /// For which sentence, counted from 0.
    pub sentence: usize,
}

macro_rules! forward_to_inner {
    ($pointer:ident) => {
        impl<M: Model + ?Sized> Model for $pointer<M> {
            fn params(&self) -> &Params {
                (**self).params()
            }

            fn check(&self, batch: &Batch) -> Result<(), BatchError> {
                (**self).check(batch)
            }

            fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy {
                (**self).loss(batch, pass)
            }

            fn predictions(&self, batch: &Batch) -> usize {
                (**self).predictions(batch)
            }
        }

        impl<M: Generate + ?Sized> Generate for $pointer<M> {
            fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
                (**self).check_source(source, sequences)
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
    };
}

forward_to_inner!(Box);
forward_to_inner!(Arc);
