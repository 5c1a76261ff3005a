//! Sources in, hypotheses out: all at once, or as they come.

use std::sync::Arc;

use heedful_tensor::Ragged;

use super::DecodeError;
use super::beam::Beam;
use super::engine::{Engine, Plan, Scores};
use super::hypothesis::{Continuation, Hypothesis};
use super::options::SearchOptions;
use super::sample::Samples;
use crate::data::batch::{BatchError, lay_end_to_end};
use crate::models::Generate;

/// For each source its `n_best` hypotheses, best first. What a source gets, to the bit, depends neither on the other
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
    // The longest first: at the end no long one is left alone.
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

/// A search that takes sources at any time and gives each result when it is there. [`search`] is made of it;
/// programs that must not wait for input push what they have and step.
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

    /// Adds a source under a number of the caller's; errors name it.
    pub fn push(&mut self, ticket: usize, source: Vec<u32>) -> Result<(), DecodeError> {
        let options = self.options.clone();
        self.push_with(ticket, source, options)
    }

    /// As [`Search::push`] with options of its own; of these the type of the products and `batch_tokens` are the search's
    /// all the same. Sources with different options are decoded side by side, and none notices.
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

    /// Whether one more source would soon find work. More may be pushed; they wait.
    pub fn has_room(&self) -> bool {
        self.engine.has_room()
    }

    /// Whether all sources that were pushed are done.
    pub fn is_idle(&self) -> bool {
        self.engine.is_idle()
    }

    /// Gives a source up, whether it waits or is at work: nothing will come out for it, and what the others get does not
    /// change. A number that is not there is no error.
    pub fn cancel(&mut self, ticket: usize) {
        self.engine.cancel(ticket);
    }

    /// What the best open hypothesis of a source at work has said; `None` if it is not at work.
    pub fn so_far(&self, ticket: usize) -> Option<Vec<u32>> {
        match self.engine.plan(ticket)? {
            Strategy::Beam(beam) => beam.so_far(),
            Strategy::Samples(samples) => samples.so_far(),
        }
    }

    /// One token more for every hypothesis of the sources at work: the numbers and hypotheses of those that are done. A
    /// source that the model has no numbers for is done with an error; the others go on.
    pub fn step(&mut self) -> Vec<(usize, Result<Vec<Hypothesis>, DecodeError>)> {
        self.engine.step()
    }
}

/// What [`SearchOptions`] ask for.
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

    fn width(&self) -> usize {
        match self {
            Strategy::Beam(beam) => beam.width(),
            Strategy::Samples(samples) => samples.width(),
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
