//! Deduplication: equal inputs of a search are decoded once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::DecodeError;
use super::hypothesis::Hypothesis;
use super::input::{SearchInput, SentenceId};

/// Maximum number of tokens of the inputs and results that are cached for later inputs.
const MAX_CACHED_TOKENS: usize = 1 << 21;

/// The inputs that are being decoded, and a cache of earlier results. The cache is bounded, so that memory
/// does not grow with the number of inputs.
#[derive(Default)]
pub(super) struct Deduplication {
    /// The id under which each input is decoded.
    ids: FxHashMap<Arc<SearchInput>, SentenceId>,
    /// For each id that is being decoded, its input and the sentences that wait for the result, in order.
    waiting: FxHashMap<SentenceId, (Arc<SearchInput>, Vec<SentenceId>)>,
    cache: FxHashMap<Arc<SearchInput>, Vec<Hypothesis>>,
    cached_tokens: usize,
}

/// The state of a sentence's input.
pub(super) enum Lookup {
    /// No equal input is known: it must be decoded.
    New,
    /// An equal input is being decoded.
    Decoding,
    /// The result is cached.
    Cached(Vec<Hypothesis>),
}

impl Deduplication {
    /// Adds a sentence.
    pub(super) fn add(&mut self, id: SentenceId, input: &SearchInput) -> Lookup {
        if let Some(found) = self.cache.get(input) {
            return Lookup::Cached(found.clone());
        }
        if let Some((_, ids)) = self.ids.get(input).and_then(|first| self.waiting.get_mut(first)) {
            ids.push(id);
            return Lookup::Decoding;
        }
        let input = Arc::new(input.clone());
        self.ids.insert(input.clone(), id);
        self.waiting.insert(id, (input, vec![id]));
        Lookup::New
    }

    /// The id under which a sentence is decoded: its own, or that of an equal sentence.
    pub(super) fn decoded_as(&self, id: SentenceId) -> SentenceId {
        if self.waiting.contains_key(&id) {
            return id;
        }
        let first = self.waiting.iter().find(|(_, (_, ids))| ids.contains(&id));
        first.map_or(id, |(&first, _)| first)
    }

    /// Removes a sentence; returns the id that must be cancelled if no other sentence waits for the same
    /// result.
    pub(super) fn cancel(&mut self, id: SentenceId) -> Option<SentenceId> {
        let first = self.decoded_as(id);
        let Some((input, ids)) = self.waiting.get_mut(&first) else { return Some(id) };
        ids.retain(|&waiting| waiting != id);
        if !ids.is_empty() {
            return None;
        }
        self.ids.remove(input);
        self.waiting.remove(&first);
        Some(first)
    }

    /// All sentences that share the result decoded under an id.
    pub(super) fn finish(
        &mut self,
        first: SentenceId,
        found: &Result<Vec<Hypothesis>, DecodeError>,
    ) -> Vec<SentenceId> {
        let Some((input, ids)) = self.waiting.remove(&first) else { return vec![first] };
        self.ids.remove(&input);
        if let Ok(found) = found {
            self.insert(input, found);
        }
        ids
    }

    fn insert(&mut self, input: Arc<SearchInput>, found: &[Hypothesis]) {
        let tokens = input.source.len() + found.iter().map(|found| found.tokens.len()).sum::<usize>();
        if self.cached_tokens + tokens > MAX_CACHED_TOKENS {
            self.cache.clear();
            self.cached_tokens = 0;
        }
        if tokens <= MAX_CACHED_TOKENS {
            self.cache.insert(input, found.to_vec());
            self.cached_tokens += tokens;
        }
    }
}
