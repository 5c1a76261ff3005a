//! The abilities of models, as traits. The trainer, the search and the rest know a model only by these traits, so each is
//! written once for all models, and what a model cannot do does not compile.
//!
//! ```text
//! Model       params, check, loss            every model: it can be trained
//! Generate    start → read → step → step …   a decoder: it predicts token after token
//! Label       label_scores                   a classifier
//! Encode      encode                         part of a model: one vector for each token of a text
//! ```
//!
//! A decoding step takes the newest token of every hypothesis and returns the logits of the next one. Hypotheses are rows;
//! each names the row of the previous step that it continues, so a search may drop, keep and duplicate them.

use std::sync::Arc;

use heedful_tensor::ops::{self, CrossEntropy, TopK};
use heedful_tensor::{Params, Precision, Ragged, Rounding, Tensor};

use super::hand_over::HandOver;
use crate::data::SpecialTokens;
use crate::data::batch::{Batch, BatchError};
use crate::layers::{HeadError, HeadName, Pass};

/// A model that can be trained.
pub trait Model: Send + Sync {
    /// Its parameters.
    fn params(&self) -> &Params;

    /// Whether the batch fits the model: known tokens, and sequences that are not too long.
    fn check(&self, batch: &Batch) -> Result<(), BatchError>;

    /// The cross entropy of the batch's targets. A recording pass afterwards holds all attention weights.
    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy;

    /// The number of predictions that [`Model::loss`] averages over.
    fn predictions(&self, batch: &Batch) -> usize {
        batch.target_tokens()
    }

    /// The tokens that its texts begin and end with, and others that stand for no text.
    fn special_tokens(&self) -> SpecialTokens {
        SpecialTokens::default()
    }
}

/// A model that generates a target from a source, token by token: a translation, or the continuation of a prompt.
pub trait Generate: Model {
    /// Whether it can read these sources, which are laid end to end.
    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError>;

    /// Maximum number of tokens of a target, with `<bos>` and without `<eos>`; `None` for no limit.
    fn longest_target(&self) -> Option<usize>;

    /// Starts decoding, with matrix products in this type and no sentence yet.
    fn start(&self, compute: Precision) -> Box<dyn Decoding + '_>;

    /// Every attention head that it can run without; none where there are no heads.
    fn heads(&self) -> Vec<HeadName> {
        Vec::new()
    }

    /// Whether it can run without these heads.
    fn check_heads(&self, heads: &[HeadName]) -> Result<(), HeadError> {
        if heads.is_empty() { Ok(()) } else { Err(HeadError::NoHeads) }
    }

    /// As [`Generate::start`], with the output of these heads set to zero. The model has [checked](Generate::check_heads)
    /// them.
    ///
    /// # Panics
    /// If it has no heads.
    fn start_without(&self, compute: Precision, heads: &[HeadName]) -> Box<dyn Decoding + '_> {
        assert!(heads.is_empty(), "start_without: a model without heads");
        self.start(compute)
    }
}

/// A classifier: a score for every label of every text.
pub trait Label: Model {
    /// Whether it can read these texts, which are laid end to end.
    fn check_text(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError>;

    /// texts × labels (f32).
    fn label_scores(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor;
}

/// An encoder of texts: one vector for each token.
pub trait Encode: Send + Sync {
    /// Width of the vectors.
    fn width(&self) -> usize;

    /// Maximum number of tokens of a text; `None` for no limit.
    fn longest_text(&self) -> Option<usize>;

    /// What it reads around a text, which its caller puts there.
    fn special_tokens(&self) -> SpecialTokens {
        SpecialTokens::default()
    }

    /// Whether it can read these texts, which are laid end to end.
    fn check(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError>;

    /// One vector for each token: tokens × width.
    fn encode(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor;

    /// The last of the vectors of each text: sequences × width.
    fn last(&self, states: &Tensor, sequences: &Ragged) -> Tensor {
        let last: Vec<usize> = sequences.ranges().map(|range| range.end - 1).collect();
        ops::gather_rows(states, &last)
    }
}

/// The state of decoding: the encoded sources, and the past of every hypothesis.
///
/// The scores of a row depend on its sentence and its past alone, to the bit, and on no other row.
pub trait Decoding: Send {
    /// Encodes more sources, laid end to end, which the model has checked. Sentences are numbered from 0 in the order in
    /// which they are read.
    fn read(&mut self, source: &[u32], sequences: &Ragged);

    /// Reads on in sources that take many steps, a slice at a time, so that other sentences need not wait for all of them.
    fn read_on(&mut self) {}

    /// Whether all of a sentence's source is read: it has no rows before.
    fn is_read(&self, _sentence: usize) -> bool {
        true
    }

    /// Forgets a sentence that is cancelled before it had rows.
    fn forget(&mut self, _sentence: usize) {}

    /// Its ability to restrict sentences to some of the target tokens, if it has it.
    fn as_restrict(&mut self) -> Option<&mut dyn Restrict> {
        None
    }

    /// Its ability to give sentences to another decoding and to take some, if it has it.
    fn as_hand_over(&mut self) -> Option<&mut dyn HandOver> {
        None
    }

    /// Appends a token to each row's past: rows × vocabulary logits (f32) of the next token. A sentence that had rows in an
    /// earlier step and has none in this one is finished: its state may be freed.
    fn step(&mut self, rows: &[Row]) -> Tensor;

    /// As [`Decoding::step`] for a search that wants no more than it says: its best tokens go to `best`. Returns the logits if
    /// all are wanted, or they were computed anyway.
    fn step_for(&mut self, rows: &[Row], wanted: &Wanted, best: &mut TopK) -> Option<Tensor> {
        wanted.find_in(self.step(rows), best)
    }
}

/// A decoding that computes the scores of some target tokens only.
pub trait Restrict {
    /// How many target tokens there are.
    fn vocabulary(&self) -> usize;

    /// From now on only these tokens, which are sorted, have scores in the rows of a sentence that was read and had no rows yet;
    /// the others have −∞. Either all sentences of a decoding are restricted or none.
    fn restrict(&mut self, sentence: usize, tokens: Vec<u32>);
}

/// What a search wants of the logits of a step.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// How many of each row's best tokens.
    pub best: usize,
    /// The logits of tokens besides them, by row.
    pub others: Vec<(usize, u32)>,
    /// Whether the logits of all tokens are wanted.
    pub all: bool,
    /// How sums are rounded.
    pub rounding: Rounding,
}

impl Wanted {
    /// Finds what is wanted in logits. Returns them if all are wanted, or they are at hand.
    pub(crate) fn find_in(&self, logits: Tensor, best: &mut TopK) -> Option<Tensor> {
        if logits.device().has_own_memory() {
            best.find_and(&logits, self.best, &self.others, self.rounding);
            return self.all.then_some(logits);
        }
        best.find(&logits, self.best, self.rounding);
        Some(logits)
    }
}

/// A hypothesis at one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The number of its source sentence.
    pub sentence: usize,
    /// The row of the previous step that it continues; `None` for the first token of a sentence.
    pub parent: Option<usize>,
    /// Its newest token.
    pub token: u32,
}

/// A model whose parameters are damaged: its scores are not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the model's scores for sentence {sentence} are not finite: its parameters are damaged, use those of an earlier \
     checkpoint"
)]
pub struct BrokenModel {
    /// The sentence, counted from 0.
    pub sentence: usize,
}

impl crate::error::Cause for BrokenModel {}

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

            fn special_tokens(&self) -> SpecialTokens {
                (**self).special_tokens()
            }
        }

        impl<M: Generate + ?Sized> Generate for $pointer<M> {
            fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
                (**self).check_source(source, sequences)
            }

            fn longest_target(&self) -> Option<usize> {
                (**self).longest_target()
            }

            fn start(&self, compute: Precision) -> Box<dyn Decoding + '_> {
                (**self).start(compute)
            }

            fn heads(&self) -> Vec<HeadName> {
                (**self).heads()
            }

            fn check_heads(&self, heads: &[HeadName]) -> Result<(), HeadError> {
                (**self).check_heads(heads)
            }

            fn start_without(&self, compute: Precision, heads: &[HeadName]) -> Box<dyn Decoding + '_> {
                (**self).start_without(compute, heads)
            }
        }
    };
}

forward_to_inner!(Box);
forward_to_inner!(Arc);
