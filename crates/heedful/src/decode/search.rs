//! The search for hypotheses: for all sources at once, or for sources as they arrive.

use std::sync::Arc;

use heedful_tensor::{Device, Ragged};

use super::DecodeError;
use super::beam::Beam;
use super::constraints::Constraints;
use super::engine::Engine;
use super::ensemble::Ensemble;
use super::group::{Plan, Sentence};
use super::hypothesis::{Continuation, Hypothesis};
use super::limits::Limits;
use super::needs::Needs;
use super::options::SearchOptions;
use super::sample::Samples;
use super::scores::Scores;
use super::unique::UniqueSearch;
use crate::data::batch::{Batch, BatchError, lay_end_to_end};
use crate::data::shortlist::Shortlist;
use crate::models::{Decoding, Generate};

/// A source, and what its outputs must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SearchInput {
    /// The tokens of the source.
    pub source: Vec<u32>,
    /// What the outputs must have.
    pub constraints: Constraints,
}

impl From<Vec<u32>> for SearchInput {
    fn from(source: Vec<u32>) -> SearchInput {
        SearchInput { source, constraints: Constraints::default() }
    }
}

/// For each source its `n_best` hypotheses, best first. The result for a source depends, to the bit, neither on the other
/// sources nor on their order, nor on `batch_tokens`, nor on the number of threads. Equal sources are decoded once.
pub fn search(
    model: &dyn Generate,
    sources: &[Vec<u32>],
    options: &SearchOptions,
) -> Result<Vec<Vec<Hypothesis>>, DecodeError> {
    let inputs: Vec<SearchInput> = sources.iter().cloned().map(SearchInput::from).collect();
    search_by(&model.into(), &inputs, options, &Limits::default())
}

/// As [`search`], by several models, with constraints and limits.
pub fn search_by(
    ensemble: &Ensemble<'_>,
    inputs: &[SearchInput],
    options: &SearchOptions,
    limits: &Limits,
) -> Result<Vec<Vec<Hypothesis>>, DecodeError> {
    options.check()?;
    if inputs.is_empty() {
        return Ok(Vec::new());
    }
    let (tokens, sequences) = lay_end_to_end(inputs.iter().map(|input| input.source.as_slice()))?;
    ensemble.check_source(&tokens, &sequences)?;
    let mut search = UniqueSearch::new(ensemble, options)?;
    let mut order: Vec<usize> = (0..inputs.len()).collect();
    // The longest first, so that no long one is left to be decoded alone at the end.
    order.sort_by_key(|&i| std::cmp::Reverse(inputs[i].source.len()));
    for i in order {
        search.push(i, inputs[i].clone())?;
    }
    let mut found = vec![Vec::new(); inputs.len()];
    while !search.is_idle() {
        for (i, hypotheses) in search.step() {
            found[i] = hypotheses?;
        }
        limits.check(search.generated())?;
    }
    Ok(found)
}

/// A search that takes sources at any time and returns each result as soon as it is finished. [`search`] uses it; programs
/// that must not wait for input push what they have and step.
pub struct Search<'m> {
    ensemble: Ensemble<'m>,
    options: Arc<SearchOptions>,
    engine: Engine<'m, Strategy>,
}

impl<'m> Search<'m> {
    /// A search without sources.
    pub fn new(model: &'m dyn Generate, options: &SearchOptions) -> Result<Search<'m>, DecodeError> {
        Search::by(&model.into(), options)
    }

    /// A search without sources, by several models.
    pub fn by(ensemble: &Ensemble<'m>, options: &SearchOptions) -> Result<Search<'m>, DecodeError> {
        options.check()?;
        let mut decodings = ensemble.start_for_threads(options)?;
        if let Some(shortlist) = &options.shortlist {
            if ensemble.device() == Device::Cuda {
                let reason =
                    "a card computes the scores of all tokens: search without it, or on the processor";
                return Err(DecodeError::Shortlist { reason });
            }
            check_shortlist(shortlist, &mut *decodings[0])?;
        }
        let (device, rounding) = (ensemble.device(), options.compute.rounding());
        let capacity = options.capacity(ensemble.params());
        let engine = Engine::new(decodings, device, rounding, capacity);
        Ok(Search { ensemble: ensemble.clone(), options: Arc::new(options.clone()), engine })
    }

    /// Adds a source under an identifier of the caller's, which errors name.
    pub fn push(&mut self, ticket: usize, source: Vec<u32>) -> Result<(), DecodeError> {
        let options = self.options.clone();
        self.push_with(ticket, source, options)
    }

    /// As [`Search::push`] with options for this source; `compute`, `shortlist`, `without_heads` and `batch_tokens` are still those of the search. Sources
    /// with different options are decoded in one batch, without any effect on their results.
    pub fn push_with(
        &mut self,
        ticket: usize,
        source: Vec<u32>,
        options: Arc<SearchOptions>,
    ) -> Result<(), DecodeError> {
        self.push_input(ticket, source.into(), options)
    }

    /// As [`Search::push_with`] with constraints.
    pub fn push_input(
        &mut self,
        ticket: usize,
        input: SearchInput,
        options: Arc<SearchOptions>,
    ) -> Result<(), DecodeError> {
        options.check()?;
        self.check(ticket, &input, &options)?;
        let SearchInput { source, constraints } = &input;
        let limit = options.limit(source.len(), self.ensemble.longest_target()).max(constraints.prefix.len());
        let rows = options.rows();
        let special = self.ensemble.special_tokens();
        let eos = special.eos;
        let strategy = match options.sampling {
            None => Strategy::Beam(Beam::new(options, special, constraints, limit)),
            Some(sampling) => Strategy::Samples(Samples::new(options, sampling, special, &input, limit)),
        };
        let tokens = self.options.shortlist.as_ref().map(|shortlist| {
            // What is forced has a score too.
            let forced = constraints.prefix.iter().chain(constraints.phrases.iter().flatten()).copied();
            shortlist.tokens(source, forced.chain([eos]))
        });
        let weight = source.len() * rows;
        self.engine.push(Sentence { ticket, source: input.source, tokens, weight, rows, plan: strategy });
        Ok(())
    }

    fn check(&self, ticket: usize, input: &SearchInput, options: &SearchOptions) -> Result<(), DecodeError> {
        let SearchInput { source, constraints } = input;
        if source.is_empty() {
            return Err(BatchError::EmptySource { sentence: ticket }.into());
        }
        let alone = Ragged::from_lengths([source.len()]);
        let of_ticket = |error: BatchError| error.of_sentence(ticket);
        self.ensemble.check_source(source, &alone).map_err(of_ticket)?;
        let special = self.ensemble.special_tokens();
        constraints.check(ticket, special.eos)?;
        if options.sampling.is_some() && !constraints.phrases.is_empty() {
            let reason = "phrases need beam search: do not sample";
            return Err(DecodeError::Constraints { sentence: ticket, reason });
        }
        let prefix = (!constraints.prefix.is_empty()).then_some(&constraints.prefix);
        for target in constraints.phrases.iter().chain(prefix) {
            let batch = Batch::new(&[(source.clone(), target.clone())], special.bos, special.eos)?;
            self.ensemble.check(&batch).map_err(of_ticket)?;
        }
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

    /// Tokens that were generated: one for each source and step, however wide the beam.
    pub fn generated(&self) -> usize {
        self.engine.generated()
    }

    /// Tokens that were generated for a source; `None` if it is not being decoded.
    pub fn generated_for(&self, ticket: usize) -> Option<usize> {
        self.engine.generated_for(ticket)
    }

    /// One more token for every open hypothesis: returns the identifiers and hypotheses of the sources that are finished. A
    /// source whose scores are not finite finishes with an error; the others continue.
    pub fn step(&mut self) -> Vec<(usize, Result<Vec<Hypothesis>, DecodeError>)> {
        self.engine.step()
    }
}

/// Whether a model's decoding can use a shortlist.
fn check_shortlist(shortlist: &Shortlist, decoding: &mut dyn Decoding) -> Result<(), DecodeError> {
    let refuse = |reason| Err(DecodeError::Shortlist { reason });
    match decoding.as_restrict() {
        None => refuse("only a single Transformer can use one: search without it"),
        Some(restrict) if restrict.vocabulary() != shortlist.target_vocabulary() => {
            refuse("it was learned for another vocabulary: use that of the model")
        }
        Some(_) => Ok(()),
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
