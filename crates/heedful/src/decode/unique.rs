//! A search in which equal inputs are decoded once.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::DecodeError;
use super::ensemble::Ensemble;
use super::hypothesis::Hypothesis;
use super::options::SearchOptions;
use super::search::{Search, SearchInput};
use crate::models::BrokenModel;

/// Maximum number of tokens of the inputs and results that are kept for inputs that are still to come.
const KEPT_TOKENS: usize = 1 << 21;

/// A [`Search`] with the same options for all inputs: what comes again gets the result that it had. Results of long ago are
/// forgotten, so that memory does not grow with the number of inputs.
pub struct UniqueSearch<'m> {
    search: Search<'m>,
    options: Arc<SearchOptions>,
    /// Inputs that are being decoded, and under which number.
    numbers: FxHashMap<Arc<SearchInput>, usize>,
    /// Who waits for them.
    waiting: BTreeMap<usize, (Arc<SearchInput>, Vec<usize>)>,
    next: usize,
    kept: FxHashMap<Arc<SearchInput>, Vec<Hypothesis>>,
    kept_tokens: usize,
    /// Results that were known at once.
    known: Vec<(usize, Vec<Hypothesis>)>,
}

impl<'m> UniqueSearch<'m> {
    /// A search without inputs.
    pub fn new(ensemble: &Ensemble<'m>, options: &SearchOptions) -> Result<UniqueSearch<'m>, DecodeError> {
        Ok(UniqueSearch {
            search: Search::by(ensemble, options)?,
            options: Arc::new(options.clone()),
            numbers: FxHashMap::default(),
            waiting: BTreeMap::new(),
            next: 0,
            kept: FxHashMap::default(),
            kept_tokens: 0,
            known: Vec::new(),
        })
    }

    /// Adds an input under an identifier of the caller's, which errors name.
    pub fn push(&mut self, ticket: usize, input: SearchInput) -> Result<(), DecodeError> {
        if let Some(found) = self.kept.get(&input) {
            self.known.push((ticket, found.clone()));
            return Ok(());
        }
        if let Some((_, tickets)) = self.numbers.get(&input).and_then(|number| self.waiting.get_mut(number)) {
            tickets.push(ticket);
            return Ok(());
        }
        let pushed = self.search.push_input(self.next, input.clone(), self.options.clone());
        pushed.map_err(|error| error.of_sentence(ticket))?;
        let input = Arc::new(input);
        self.numbers.insert(input.clone(), self.next);
        self.waiting.insert(self.next, (input, vec![ticket]));
        self.next += 1;
        Ok(())
    }

    /// As [`Search::has_capacity`].
    pub fn has_capacity(&self) -> bool {
        self.search.has_capacity()
    }

    /// Whether all inputs have their results.
    pub fn is_idle(&self) -> bool {
        self.known.is_empty() && self.search.is_idle()
    }

    /// As [`Search::generated`].
    pub fn generated(&self) -> usize {
        self.search.generated()
    }

    /// As [`Search::step`].
    pub fn step(&mut self) -> Vec<(usize, Result<Vec<Hypothesis>, DecodeError>)> {
        let mut results: Vec<_> = self.known.drain(..).map(|(ticket, found)| (ticket, Ok(found))).collect();
        if self.search.is_idle() {
            return results;
        }
        for (number, result) in self.search.step() {
            let Some((input, tickets)) = self.waiting.remove(&number) else { continue };
            self.numbers.remove(&input);
            if let Ok(found) = &result {
                self.keep(input, found);
            }
            let of = |ticket: usize| (ticket, result.clone().map_err(|error| error.of_sentence(ticket)));
            results.extend(tickets.into_iter().map(of));
        }
        results
    }

    fn keep(&mut self, input: Arc<SearchInput>, found: &[Hypothesis]) {
        let tokens = input.source.len() + found.iter().map(|found| found.tokens.len()).sum::<usize>();
        if self.kept_tokens + tokens > KEPT_TOKENS {
            self.kept.clear();
            self.kept_tokens = 0;
        }
        if tokens <= KEPT_TOKENS {
            self.kept.insert(input, found.to_vec());
            self.kept_tokens += tokens;
        }
    }
}

impl DecodeError {
    /// The same of another sentence.
    pub(crate) fn of_sentence(self, sentence: usize) -> DecodeError {
        match self {
            DecodeError::Batch(error) => error.of_sentence(sentence).into(),
            DecodeError::Constraints { reason, .. } => DecodeError::Constraints { sentence, reason },
            DecodeError::Broken(_) => BrokenModel { sentence }.into(),
            other => other,
        }
    }
}
