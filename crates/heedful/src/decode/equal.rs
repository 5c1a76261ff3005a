//! Equal inputs of a search, which are decoded once.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::DecodeError;
use super::hypothesis::Hypothesis;
use super::input::{SearchInput, SentenceId};

/// Maximum number of tokens of the inputs and results that are kept for inputs that are still to come.
const KEPT_TOKENS: usize = 1 << 21;

/// The inputs that are being decoded, and the results of earlier ones. Results of long ago are forgotten, so that memory does
/// not grow with the number of inputs.
#[derive(Default)]
pub(super) struct EqualInputs {
    /// Under which id each input is decoded.
    ids: FxHashMap<Arc<SearchInput>, SentenceId>,
    /// The sentences that wait for what is decoded under an id, in their order.
    waiting: FxHashMap<SentenceId, (Arc<SearchInput>, Vec<SentenceId>)>,
    kept: FxHashMap<Arc<SearchInput>, Vec<Hypothesis>>,
    kept_tokens: usize,
}

/// What becomes of a sentence.
pub(super) enum Admission {
    /// No equal one is known: it is to be decoded.
    New,
    /// It waits for an equal one.
    Waits,
    /// Its result is known.
    Known(Vec<Hypothesis>),
}

impl EqualInputs {
    /// Adds a sentence.
    pub(super) fn add(&mut self, id: SentenceId, input: &SearchInput) -> Admission {
        if let Some(found) = self.kept.get(input) {
            return Admission::Known(found.clone());
        }
        if let Some((_, ids)) = self.ids.get(input).and_then(|first| self.waiting.get_mut(first)) {
            ids.push(id);
            return Admission::Waits;
        }
        let input = Arc::new(input.clone());
        self.ids.insert(input.clone(), id);
        self.waiting.insert(id, (input, vec![id]));
        Admission::New
    }

    /// The id under which a sentence is decoded: its own, or that of an equal one.
    pub(super) fn decoded_as(&self, id: SentenceId) -> SentenceId {
        if self.waiting.contains_key(&id) {
            return id;
        }
        let first = self.waiting.iter().find(|(_, (_, ids))| ids.contains(&id));
        first.map_or(id, |(&first, _)| first)
    }

    /// Takes a sentence out; returns the id under which nobody waits for a result any more.
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

    /// All sentences that have the result of what was decoded under an id.
    pub(super) fn finish(
        &mut self,
        first: SentenceId,
        found: &Result<Vec<Hypothesis>, DecodeError>,
    ) -> Vec<SentenceId> {
        let Some((input, ids)) = self.waiting.remove(&first) else { return vec![first] };
        self.ids.remove(&input);
        if let Ok(found) = found {
            self.keep(input, found);
        }
        ids
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
