//! The traits of models. The trainer and the search use models only through these traits, so they are written
//! once for all models, and using an ability that a model lacks does not compile.
//!
//! ```text
//! Model       params, check, loss            every model: it can be trained
//! Generate    start → read → step → step …   a decoder: it predicts token after token
//! Label       label_scores                   a classifier
//! Encode      encode                         an encoder: one vector for each token of a text
//! ```
//!
//! A decoding step takes the newest token of every hypothesis and returns the logits of the next one.
//! Hypotheses are rows; each row names its parent row in the previous step, so a search can drop, keep and
//! duplicate hypotheses.

use std::sync::Arc;

use heedful_tensor::ops::{self, CrossEntropy, TopK};
use heedful_tensor::{Params, Precision, Ragged, Rounding, Tensor};

use super::inspect::Inspect;
use super::migrate::Migrate;
use crate::data::SpecialTokens;
use crate::data::batch::{Batch, BatchError};
use crate::layers::{HeadError, HeadName, Pass};

/// A model that can be trained.
pub trait Model: Send + Sync {
    /// Its parameters.
    fn params(&self) -> &Params;

    /// Checks that the batch fits the model: all tokens are in the vocabulary, no sequence is too long.
    fn check(&self, batch: &Batch) -> Result<(), BatchError>;

    /// The cross entropy of the batch's targets. If `pass` records attention, it holds all attention weights
    /// afterwards.
    fn loss(&self, batch: &Batch, pass: &mut Pass) -> CrossEntropy;

    /// The number of predictions that [`Model::loss`] averages over.
    fn predictions(&self, batch: &Batch) -> usize {
        batch.target_tokens()
    }

    /// The special tokens of its vocabularies (begin, end, mask …).
    fn special_tokens(&self) -> SpecialTokens {
        SpecialTokens::default()
    }
}

/// A model that generates a target from a source, token by token: a translation, or the continuation of a
/// prompt.
pub trait Generate: Model {
    /// Checks that it can read these sources, which are concatenated.
    fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError>;

    /// Maximum number of tokens of a target, with `<bos>` and without `<eos>`; `None` for no limit.
    fn longest_target(&self) -> Option<usize>;

    /// Starts decoding without sentences, with matrix products in this precision.
    fn start(&self, compute: Precision) -> Box<dyn Decoding + '_>;

    /// This model as [`Inspect`], if its states can be recorded and replaced.
    fn as_inspect(&self) -> Option<&dyn Inspect> {
        None
    }

    /// Every attention head that can be masked out; empty if the model has none.
    fn heads(&self) -> Vec<HeadName> {
        Vec::new()
    }

    /// Checks that these heads can be masked out.
    fn check_heads(&self, heads: &[HeadName]) -> Result<(), HeadError> {
        if heads.is_empty() { Ok(()) } else { Err(HeadError::NoHeads) }
    }

    /// As [`Generate::start`], with the output of these heads set to zero. The heads must have passed
    /// [`Generate::check_heads`].
    ///
    /// # Panics
    /// If the model has no heads.
    fn start_without_heads(&self, compute: Precision, heads: &[HeadName]) -> Box<dyn Decoding + '_> {
        assert!(heads.is_empty(), "start_without_heads: the model has no heads");
        self.start(compute)
    }
}

/// A classifier: a score for every label of every text.
pub trait Label: Model {
    /// Checks that it can read these texts, which are concatenated.
    fn check_text(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError>;

    /// Scores (f32) of shape texts × labels.
    fn label_scores(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor;
}

/// An encoder of texts: one vector for each token.
pub trait Encode: Send + Sync {
    /// Width of the vectors.
    fn width(&self) -> usize;

    /// Maximum number of tokens of a text; `None` for no limit.
    fn longest_text(&self) -> Option<usize>;

    /// The special tokens that the caller must add around a text.
    fn special_tokens(&self) -> SpecialTokens {
        SpecialTokens::default()
    }

    /// Checks that it can read these texts, which are concatenated.
    fn check(&self, text: &[u32], sequences: &Ragged) -> Result<(), BatchError>;

    /// One vector for each token: tokens × width.
    fn encode(&self, text: &[u32], sequences: &Ragged, pass: &mut Pass) -> Tensor;

    /// The vector of each text's last token: sequences × width.
    fn last(&self, states: &Tensor, sequences: &Ragged) -> Tensor {
        let last: Vec<usize> = sequences.ranges().map(|range| range.end - 1).collect();
        ops::gather_rows(states, &last)
    }
}

/// The state of decoding: the encoded sources, and the past (KV cache or recurrent state) of every
/// hypothesis.
///
/// The scores of a row depend only on its sentence and its past: they are bit-identical whatever other rows
/// are in the batch.
pub trait Decoding: Send {
    /// Encodes more sources, which are concatenated and must have passed [`Generate::check_source`].
    /// Sentences are numbered from 0 in the order in which they are read.
    fn read(&mut self, source: &[u32], sequences: &Ragged);

    /// Chunked prefill: reads the next chunk of sources that take many steps, so that other sentences need
    /// not wait for all of them.
    fn read_on(&mut self) {}

    /// Whether a sentence's whole source has been read. Until then the sentence must have no rows.
    fn is_read(&self, _sentence: usize) -> bool {
        true
    }

    /// Frees a sentence that is cancelled before it had rows.
    fn forget(&mut self, _sentence: usize) {}

    /// This decoding as [`Restrict`], if it supports vocabulary shortlists.
    fn as_restrict(&mut self) -> Option<&mut dyn Restrict> {
        None
    }

    /// This decoding as [`Migrate`], if its sentences can move to another decoding.
    fn as_migrate(&mut self) -> Option<&mut dyn Migrate> {
        None
    }

    /// Appends a token to each row and returns the logits (f32) of the next token: rows × vocabulary. A
    /// sentence that had rows in an earlier step and has none in this one is finished; its state may be
    /// freed.
    fn step(&mut self, rows: &[Row]) -> Tensor;

    /// As [`Decoding::step`] for a search that needs only part of the logits: the top-k tokens go to `best`.
    /// Returns the logits if all are requested, or if they are in memory anyway.
    fn step_for(&mut self, rows: &[Row], request: &LogitsRequest, best: &mut TopK) -> Option<Tensor> {
        request.select(self.step(rows), best)
    }
}

/// A decoding that can compute the scores of a shortlist of target tokens only.
pub trait Restrict {
    /// Size of the target vocabulary.
    fn vocabulary(&self) -> usize;

    /// Restricts some sentences, which were read and had no rows yet, each to its tokens, which must be sorted;
    /// all others get the score −∞. Either all sentences of a decoding are restricted or none.
    fn restrict(&mut self, lists: Vec<(usize, Vec<u32>)>);
}

/// The part of a step's logits that a search needs.
#[derive(Clone, Debug, Default)]
pub struct LogitsRequest {
    /// How many of the best tokens of each row.
    pub top_k: usize,
    /// Further tokens whose logits are needed, as (row, token), in order of rows.
    pub extra: Vec<(usize, u32)>,
    /// Whether the logits of all tokens are needed.
    pub full: bool,
    /// How sums are rounded.
    pub rounding: Rounding,
}

impl LogitsRequest {
    /// Selects the requested tokens. Returns the logits if all are requested, or if they are in host memory.
    pub(crate) fn select(&self, logits: Tensor, best: &mut TopK) -> Option<Tensor> {
        if logits.device().has_own_memory() {
            best.find_with_extra(&logits, self.top_k, &self.extra, self.rounding);
            return self.full.then_some(logits);
        }
        best.find(&logits, self.top_k, self.rounding);
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

            fn as_inspect(&self) -> Option<&dyn Inspect> {
                (**self).as_inspect()
            }

            fn heads(&self) -> Vec<HeadName> {
                (**self).heads()
            }

            fn check_heads(&self, heads: &[HeadName]) -> Result<(), HeadError> {
                (**self).check_heads(heads)
            }

            fn start_without_heads(&self, compute: Precision, heads: &[HeadName]) -> Box<dyn Decoding + '_> {
                (**self).start_without_heads(compute, heads)
            }
        }
    };
}

forward_to_inner!(Box);
forward_to_inner!(Arc);
