//! The search for hypotheses: for all sources at once, or for sources as they arrive.

use std::sync::Arc;

use heedful_tensor::Ragged;

use super::DecodeError;
use super::beam::Beam;
use super::engine::{Engine, Plan, Scores};
use super::hypothesis::{Continuation, Hypothesis};
use super::needs::Needs;
use super::options::SearchOptions;
use super::sample::Samples;
use crate::data::batch::{BatchError, lay_end_to_end};
use crate::models::Generate;

/// For each source its `n_best` hypotheses, best first. The result for a source depends, to the bit, neither on the other
/// sources nor on their order, nor on `batch_tokens`, nor on the number of threads.
pub fn search(
    model: &dyn Generate,
    sources: &[Vec<u32>],
    options: &SearchOptions,
) -> Result<Vec<Vec<Hypothesis>>, DecodeError> {
    options.check()?;
    if sources.is_empty() {
        return Ok(Vec::new());
    }
    let (tokens, sequences) = lay_end_to_end(sources.iter().map(Vec::as_slice))?;
    model.check_source(&tokens, &sequences)?;
    let mut search = Search::new(model, options)?;
    let mut order: Vec<usize> = (0..sources.len()).collect();
    // The longest first, so that no long one is left to be decoded alone at the end.
    order.sort_by_key(|&i| std::cmp::Reverse(sources[i].len()));
    for i in order {
        search.push(i, sources[i].clone())?;
    }
    let mut found = vec![Vec::new(); sources.len()];
    while !search.is_idle() {
        for (i, hypotheses) in search.step() {
            found[i] = hypotheses?;
        }
    }
    Ok(found)
}

/// A search that takes sources at any time and returns each result as soon as it is finished. [`search`] uses it; programs
/// that must not wait for input push what they have and step.
pub struct Search<'m> {
    model: &'m dyn Generate,
    options: Arc<SearchOptions>,
    engine: Engine<'m, Strategy>,
}

impl<'m> Search<'m> {
    /// A search without sources.
    pub fn new(model: &'m dyn Generate, options: &SearchOptions) -> Result<Search<'m>, DecodeError> {
        options.check()?;
        let engine = Engine::new(model, options.compute, options.batch_tokens);
        Ok(Search { model, options: Arc::new(options.clone()), engine })
    }

    /// Adds a source under an identifier of the caller's, which errors name.
    pub fn push(&mut self, ticket: usize, source: Vec<u32>) -> Result<(), DecodeError> {
        let options = self.options.clone();
        self.push_with(ticket, source, options)
    }

    /// As [`Search::push`] with options for this source; `compute` and `batch_tokens` are still those of the search. Sources
    /// with different options are decoded in one batch, without any effect on their results.
    pub fn push_with(
        &mut self,
        ticket: usize,
        source: Vec<u32>,
        options: Arc<SearchOptions>,
    ) -> Result<(), DecodeError> {
        options.check()?;
        if source.is_empty() {
            return Err(BatchError::EmptySource { sentence: ticket }.into());
        }
        let alone = Ragged::from_lengths([source.len()]);
        self.model.check_source(&source, &alone).map_err(|error| error.of_sentence(ticket))?;
        let limit = options.limit(source.len(), self.model.longest_target());
        let weight = source.len() * options.rows();
        let special = self.model.special_tokens();
        let strategy = match options.sampling {
            None => Strategy::Beam(Beam::new(options, special, limit)),
            Some(sampling) => Strategy::Samples(Samples::new(options, sampling, special, &source, limit)),
        };
        self.engine.push(ticket, source, weight, strategy);
        Ok(())
    }

    /// Whether the search can take one more source soon. More may be pushed; they wait.
    pub fn has_capacity(&self) -> bool {
        self.engine.has_capacity()
    }

    /// Whether all sources that were pushed are finished.
    pub fn is_idle(&self) -> bool {
        self.engine.is_idle()
    }

    /// Cancels a source, whether it waits or is being decoded: it has no result, and those of the others do not change. An
    /// unknown identifier is not an error.
    pub fn cancel(&mut self, ticket: usize) {
        self.engine.cancel(ticket);
    }

    /// The tokens of the best open hypothesis of a source; `None` if the source is not being decoded.
    pub fn so_far(&self, ticket: usize) -> Option<Vec<u32>> {
        match self.engine.plan(ticket)? {
            Strategy::Beam(beam) => beam.so_far(),
            Strategy::Samples(samples) => samples.so_far(),
        }
    }

    /// One more token for every open hypothesis: returns the identifiers and hypotheses of the sources that are finished. A
    /// source whose scores are not finite finishes with an error; the others continue.
    pub fn step(&mut self) -> Vec<(usize, Result<Vec<Hypothesis>, DecodeError>)> {
        self.engine.step()
    }
}

/// Beam search or sampling, as [`SearchOptions`] choose.
enum Strategy {
    Beam(Beam),
    Samples(Samples),
}

impl Plan for Strategy {
    type Found = Vec<Hypothesis>;

    fn rows(&self) -> &[Continuation] {
        match self {
            Strategy::Beam(beam) => beam.rows(),
            Strategy::Samples(samples) => samples.rows(),
        }
    }

    fn needs(&self) -> Needs<'_> {
        match self {
            Strategy::Beam(beam) => beam.needs(),
            Strategy::Samples(samples) => samples.needs(),
        }
    }

    fn advance(&mut self, scores: &Scores<'_>) {
        match self {
            Strategy::Beam(beam) => beam.advance(scores),
            Strategy::Samples(samples) => samples.advance(scores),
        }
    }

    fn found(self) -> Vec<Hypothesis> {
        match self {
            Strategy::Beam(beam) => beam.found(),
            Strategy::Samples(samples) => samples.found(),
        }
    }
}
