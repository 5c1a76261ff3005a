//! The searches of a lane: one that all sentences join, and one at a time for sentences without some of the model's heads.
//!
//! Removed heads belong to a whole search. Sentences without the same heads are decoded together; others wait until those are
//! finished, so that a lane never has more than two searches, whatever clients ask for.

use std::collections::VecDeque;
use std::sync::Arc;

use heedful::decode::{DecodeError, Hypothesis, Search, SearchInput, SearchOptions};
use heedful::models::{Generate, HeadName};

/// The most sentences that wait for a search without their heads; further ones wait in the queue.
const MOST_WAITING: usize = 64;

/// What a search says of a sentence: its number, and what was found.
pub(super) type Found = (usize, Result<Vec<Hypothesis>, DecodeError>);

pub(super) struct Searches<'m> {
    model: &'m dyn Generate,
    options: SearchOptions,
    whole: Search<'m>,
    partial: Option<(Vec<HeadName>, Search<'m>)>,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    number: usize,
    input: SearchInput,
    options: Arc<SearchOptions>,
}

impl<'m> Searches<'m> {
    pub(super) fn new(model: &'m dyn Generate, options: &SearchOptions) -> Result<Searches<'m>, DecodeError> {
        let whole = Search::new(model, options)?;
        Ok(Searches { model, options: options.clone(), whole, partial: None, waiting: VecDeque::new() })
    }

    /// Adds a sentence under its number.
    pub(super) fn push(
        &mut self,
        number: usize,
        input: SearchInput,
        options: Arc<SearchOptions>,
    ) -> Result<(), DecodeError> {
        if options.without_heads.is_empty() {
            return self.whole.push_input(number, input, options);
        }
        self.waiting.push_back(Waiting { number, input, options });
        Ok(())
    }

    pub(super) fn has_capacity(&self) -> bool {
        self.whole.has_capacity() && self.waiting.len() < MOST_WAITING
    }

    pub(super) fn is_idle(&self) -> bool {
        self.whole.is_idle() && self.partial.is_none() && self.waiting.is_empty()
    }

    pub(super) fn cancel(&mut self, number: usize) {
        self.whole.cancel(number);
        self.waiting.retain(|waiting| waiting.number != number);
        if let Some((_, search)) = &mut self.partial {
            search.cancel(number);
        }
    }

    pub(super) fn so_far(&self, number: usize) -> Option<Vec<u32>> {
        let partial = || self.partial.as_ref().and_then(|(_, search)| search.so_far(number));
        self.whole.so_far(number).or_else(partial)
    }

    /// One token for every hypothesis of every sentence.
    pub(super) fn step(&mut self) -> Vec<Found> {
        let mut found = self.admit();
        if !self.whole.is_idle() {
            found.extend(self.whole.step());
        }
        if let Some((_, search)) = &mut self.partial {
            if !search.is_idle() {
                found.extend(search.step());
            }
            if search.is_idle() {
                self.partial = None;
            }
        }
        found
    }

    /// Gives waiting sentences to the search without their heads, which is started if there is none. Returns those that it
    /// refuses.
    fn admit(&mut self) -> Vec<Found> {
        let mut refused = Vec::new();
        if let (None, Some(first)) = (&self.partial, self.waiting.front()) {
            let heads = first.options.without_heads.clone();
            let options = SearchOptions { without_heads: heads.clone(), ..self.options.clone() };
            match Search::new(self.model, &options) {
                Ok(search) => self.partial = Some((heads, search)),
                Err(error) => {
                    refused.extend(self.waiting.pop_front().map(|first| (first.number, Err(error))));
                }
            }
        }
        let Some((heads, search)) = &mut self.partial else { return refused };
        for Waiting { number, input, options } in take_same(&mut self.waiting, heads) {
            if let Err(error) = search.push_input(number, input, options) {
                refused.push((number, Err(error)));
            }
        }
        refused
    }
}

/// Takes out the sentences without these heads, in their order.
fn take_same(waiting: &mut VecDeque<Waiting>, heads: &[HeadName]) -> Vec<Waiting> {
    let is_same = |waiting: &Waiting| waiting.options.without_heads == heads;
    let (same, others): (VecDeque<Waiting>, _) = std::mem::take(waiting).into_iter().partition(is_same);
    *waiting = others;
    same.into()
}
