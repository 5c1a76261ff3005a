//! Ensembles: several models that decode together.
//!
//! ```text
//! log p(y) = 1/M Σ_m log p_m(y) − log Z
//! ```
//!
//! The arithmetic mean of log-probabilities, renormalized (`Z`) to a distribution. The normalizers of the
//! members are constants of a row, so the mean of the logits is equivalent. An ensemble of a model with
//! itself has exactly the scores of the model.

use heedful_tensor::{Device, Params, Precision, Ragged, Tensor};

use super::DecodeError;
use super::options::SearchOptions;
use crate::data::SpecialTokens;
use crate::data::batch::{Batch, BatchError};
use crate::data::shortlist::Shortlist;
use crate::models::{Decoding, Generate, Row};

/// Models of one source and one target vocabulary, at least one.
#[derive(Clone)]
pub struct Ensemble<'m> {
    members: Vec<&'m dyn Generate>,
}

impl<'m, M: Generate> From<&'m M> for Ensemble<'m> {
    /// One model: it decodes as it does alone.
    fn from(model: &'m M) -> Ensemble<'m> {
        Ensemble { members: vec![model] }
    }
}

impl<'m> From<&'m dyn Generate> for Ensemble<'m> {
    /// One model: it decodes as it does alone.
    fn from(model: &'m dyn Generate) -> Ensemble<'m> {
        Ensemble { members: vec![model] }
    }
}

impl<'m> Ensemble<'m> {
    /// Models with the same vocabulary. An empty list, or models with different `<bos>` or `<eos>`, is an
    /// error.
    pub fn new(members: Vec<&'m dyn Generate>) -> Result<Ensemble<'m>, DecodeError> {
        let first =
            members.first().ok_or(DecodeError::Ensemble { reason: "it has no model: give at least one" })?;
        if members.iter().any(|member| member.special_tokens() != first.special_tokens()) {
            let reason = "its models begin or end their outputs differently: use models of one vocabulary";
            return Err(DecodeError::Ensemble { reason });
        }
        if members.iter().any(|member| member.params().device() != first.params().device()) {
            let reason = "its models are on several devices: move them to one";
            return Err(DecodeError::Ensemble { reason });
        }
        Ok(Ensemble { members })
    }

    /// Whether a search can use a [shortlist](super::SearchOptions::shortlist).
    pub fn supports_shortlist(&self) -> bool {
        let supports_it = || {
            self.start(&SearchOptions::default()).is_ok_and(|mut decoding| decoding.as_restrict().is_some())
        };
        self.device().supports_shortlists() && supports_it()
    }

    /// Checks that searches with these options can use a shortlist.
    pub(super) fn check_shortlist(
        &self,
        list: &Shortlist,
        options: &SearchOptions,
    ) -> Result<(), DecodeError> {
        let refuse = |reason| Err(DecodeError::Shortlist { reason });
        if !self.device().supports_shortlists() {
            return refuse("a GPU computes the scores of all tokens: search without it, or on the CPU");
        }
        match self.start(options)?.as_restrict() {
            None => refuse("only a single Transformer can use one: search without it"),
            Some(restrict) if restrict.vocabulary() != list.target_vocabulary() => {
                refuse("it was learned for another vocabulary: use that of the model")
            }
            Some(_) => Ok(()),
        }
    }

    pub(super) fn check_source(&self, source: &[u32], sequences: &Ragged) -> Result<(), BatchError> {
        self.members.iter().try_for_each(|member| member.check_source(source, sequences))
    }

    pub(super) fn check(&self, batch: &Batch) -> Result<(), BatchError> {
        self.members.iter().try_for_each(|member| member.check(batch))
    }

    pub(super) fn longest_target(&self) -> Option<usize> {
        self.members.iter().filter_map(|member| member.longest_target()).min()
    }

    /// The device of all its models.
    pub(super) fn device(&self) -> Device {
        self.params().device()
    }

    /// Type of the matrix products of a search with these options.
    pub(super) fn precision(&self, options: &SearchOptions) -> Precision {
        options.precision(self.members.iter().map(|member| member.params()))
    }

    /// The parameters of the first model, which represent all of them.
    pub(super) fn params(&self) -> &Params {
        self.members[0].params()
    }

    pub(super) fn special_tokens(&self) -> SpecialTokens {
        self.members[0].special_tokens()
    }

    /// Starts decoding, with the matrix product type and the pruned heads of the options.
    pub(super) fn start(&self, options: &SearchOptions) -> Result<Box<dyn Decoding + 'm>, DecodeError> {
        let (compute, without_heads) = (self.precision(options), &options.without_heads);
        if compute == Precision::Int8 && !self.device().has_int8() {
            let reason = "int8 is computed on the CPU only: use bf16 on a GPU";
            return Err(DecodeError::Ensemble { reason });
        }
        if let [only] = self.members[..] {
            only.check_heads(without_heads)?;
            return Ok(only.start_without_heads(compute, without_heads));
        }
        if !without_heads.is_empty() {
            let reason = "heads can be pruned from a single model only: search with one model";
            return Err(DecodeError::Ensemble { reason });
        }
        let members = self.members.iter().map(|member| member.start(compute)).collect();
        Ok(Box::new(EnsembleDecoding { members, sums: Vec::new(), means: Vec::new() }))
    }
}

/// The decoding of several models: each decodes every row.
struct EnsembleDecoding<'m> {
    members: Vec<Box<dyn Decoding + 'm>>,
    sums: Vec<f64>,
    means: Vec<f32>,
}

impl Decoding for EnsembleDecoding<'_> {
    fn read(&mut self, source: &[u32], sequences: &Ragged) {
        self.members.iter_mut().for_each(|member| member.read(source, sequences));
    }

    fn read_on(&mut self) {
        self.members.iter_mut().for_each(|member| member.read_on());
    }

    fn is_read(&self, sentence: usize) -> bool {
        self.members.iter().all(|member| member.is_read(sentence))
    }

    fn forget(&mut self, sentence: usize) {
        self.members.iter_mut().for_each(|member| member.forget(sentence));
    }

    fn step(&mut self, rows: &[Row]) -> Tensor {
        let logits: Vec<Tensor> = self.members.iter_mut().map(|member| member.step(rows).to_host()).collect();
        let [count, width] = logits[0].shape();
        for other in &logits {
            assert_eq!(other.shape(), [count, width], "ensemble: the vocabularies differ in size");
        }
        let members = logits.len() as f64;
        self.means.clear();
        for row in 0..count {
            // In f64 the mean of equal f32 logits is exact.
            self.sums.clear();
            self.sums.resize(width, 0.0);
            for member in &logits {
                let scores = member.row(row);
                self.sums.iter_mut().zip(scores.iter()).for_each(|(sum, &score)| *sum += f64::from(score));
            }
            self.means.extend(self.sums.iter().map(|sum| (sum / members) as f32));
        }
        Tensor::from_f32(count, width, &self.means)
    }
}
