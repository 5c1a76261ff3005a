//! Attention masks: which keys a query may see, and the check that it sees at least one.

use std::ops::Range;
use std::sync::Arc;

use crate::Ragged;

/// Which keys a query may see. Rules combine: a key is visible if all of them allow it.
///
/// Positions are aligned at the end: the last query is at the position of the last key. For equal lengths
/// that is the usual triangle and band; with cached keys it is what the newest queries of the full sequence
/// would see.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    causal: bool,
    within: Option<usize>,
    allowed: Vec<BoolMask>,
}

/// An arbitrary mask: for every sequence, queries × keys booleans (true = visible), row-major.
#[derive(Clone, Debug)]
pub struct BoolMask {
    table: Arc<Table>,
}

#[derive(Debug)]
struct Table {
    queries: Ragged,
    keys: Ragged,
    /// The index of each sequence's first boolean.
    starts: Vec<usize>,
    allowed: Vec<bool>,
}

/// A query that sees no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("query {query} of sequence {sequence} sees no key: every query needs at least one")]
pub struct MaskError {
    /// Which sequence.
    pub sequence: usize,
    /// Which query in it.
    pub query: usize,
}

impl Mask {
    /// Every key.
    pub fn full() -> Mask {
        Mask::default()
    }

    /// No key at a later position.
    pub fn causal(self) -> Mask {
        Mask { causal: true, ..self }
    }

    /// Only keys at distance ≤ r: the cost falls from `O(n²·d)` to `O(r·n·d)`.
    pub fn within(self, r: usize) -> Mask {
        Mask { within: Some(self.within.map_or(r, |before| before.min(r))), ..self }
    }

    /// Only keys that a boolean mask allows.
    pub fn allowed(mut self, mask: BoolMask) -> Mask {
        self.allowed.push(mask);
        self
    }

    /// Checks that every query sees a key. [`super::attention`] calls this first and panics on an error.
    ///
    /// # Panics
    /// If a boolean mask was made for other sequences.
    pub fn check(&self, queries: &Ragged, keys: &Ragged) -> Result<(), MaskError> {
        for mask in &self.allowed {
            mask.expect_sequences(queries, keys);
        }
        for (sequence, (n_queries, n_keys)) in queries.lengths().zip(keys.lengths()).enumerate() {
            let sees = |query: usize| {
                let mut seen = self.visible_keys(query, n_queries, n_keys);
                if self.allowed.is_empty() {
                    !seen.is_empty()
                } else {
                    seen.any(|key| self.allows(sequence, query, key))
                }
            };
            // Without booleans the first query is farthest from the keys: if it sees one, so do the others.
            let suspects = if self.allowed.is_empty() { n_queries.min(1) } else { n_queries };
            if let Some(query) = (0..suspects).find(|&query| !sees(query)) {
                return Err(MaskError { sequence, query });
            }
        }
        Ok(())
    }

    /// The keys that `query` may see by position alone (causality and window).
    pub(super) fn visible_keys(&self, query: usize, n_queries: usize, n_keys: usize) -> Range<usize> {
        let n_keys = n_keys as i64;
        let position = query as i64 + n_keys - n_queries as i64;
        let reach = self.within.map_or(i64::MAX / 4, |r| r.min(i64::MAX as usize / 4) as i64);
        let ahead = if self.causal { 0 } else { reach };
        let start = (position - reach).clamp(0, n_keys);
        let end = (position + ahead + 1).clamp(start, n_keys);
        start as usize..end as usize
    }

    /// The number of pairs of query and key that are visible by position alone.
    pub(super) fn pairs(&self, queries: &Ragged, keys: &Ragged) -> u64 {
        let of_sequence = |(n_queries, n_keys): (usize, usize)| -> u64 {
            if !self.causal && self.within.is_none() {
                return n_queries as u64 * n_keys as u64;
            }
            (0..n_queries).map(|query| self.visible_keys(query, n_queries, n_keys).len() as u64).sum()
        };
        queries.lengths().zip(keys.lengths()).map(of_sequence).sum()
    }

    /// The largest number of keys, out of `n_keys`, that any `n` neighbouring queries see together.
    pub(super) fn max_visible_keys(&self, n: usize, n_keys: usize) -> usize {
        self.within.map_or(n_keys, |r| n_keys.min(n.saturating_add(r.saturating_mul(2))))
    }

    /// Whether later positions are hidden.
    pub(super) fn is_causal(&self) -> bool {
        self.causal
    }

    /// The largest visible distance.
    pub(super) fn window(&self) -> Option<usize> {
        self.within
    }

    /// For every sequence queries × keys bytes, 1 where all boolean masks allow; and the index of each
    /// sequence's first byte.
    pub(in crate::ops) fn booleans(&self, queries: &Ragged, keys: &Ragged) -> (Vec<u8>, Vec<u64>) {
        let (mut allowed, mut starts) = (Vec::new(), Vec::new());
        for (sequence, (n_queries, n_keys)) in queries.lengths().zip(keys.lengths()).enumerate() {
            starts.push(allowed.len() as u64);
            for query in 0..n_queries {
                allowed.extend((0..n_keys).map(|key| u8::from(self.allows(sequence, query, key))));
            }
        }
        (allowed, starts)
    }

    /// Whether there are boolean masks.
    pub(in crate::ops) fn has_booleans(&self) -> bool {
        !self.allowed.is_empty()
    }

    /// The bias on the scores of `query` from key `first` on: 0 where the booleans allow, else −∞.
    pub(super) fn bias(&self, sequence: usize, query: usize, first: usize, out: &mut [f32]) {
        let n_keys = self.allowed.first().map_or(0, |mask| mask.table.keys.length(sequence));
        for (key, out) in (first..).zip(out) {
            let seen = key < n_keys && self.allows(sequence, query, key);
            *out = if seen { 0.0 } else { f32::NEG_INFINITY };
        }
    }

    /// One query's row of the boolean masks of a single sequence, as the mask of a sequence with that query
    /// alone.
    ///
    /// # Panics
    /// If there are several sequences, or the mask is causal or has a window.
    pub fn of_query(&self, query: usize, keys: &Ragged) -> Mask {
        assert!(!self.causal && self.within.is_none(), "Mask::of_query: {self:?} is causal or has a window");
        let one = Ragged::from_lengths([1]);
        let row = |mask: &BoolMask| {
            let row = BoolMask::new(&one, keys, mask.row(0, query).to_vec());
            row.expect("every query of a mask sees a key")
        };
        Mask { allowed: self.allowed.iter().map(row).collect(), ..Mask::full() }
    }

    /// For operations that support boolean masks only.
    ///
    /// # Panics
    /// If the mask is causal or has a window, or if a boolean mask was made for other sequences.
    pub(in crate::ops) fn expect_booleans(&self, op: &str, queries: &Ragged, keys: &Ragged) {
        assert!(
            !self.causal && self.within.is_none(),
            "{op}: {self:?} is causal or has a window; only boolean masks are supported"
        );
        self.allowed.iter().for_each(|mask| mask.expect_sequences(queries, keys));
    }

    /// Sets the scores that the booleans hide to −∞.
    #[inline]
    pub(in crate::ops) fn hide(&self, sequence: usize, query: usize, scores: &mut [f32]) {
        for mask in &self.allowed {
            for (score, allowed) in scores.iter_mut().zip(mask.row(sequence, query)) {
                if !allowed {
                    *score = f32::NEG_INFINITY;
                }
            }
        }
    }

    fn allows(&self, sequence: usize, query: usize, key: usize) -> bool {
        self.allowed.iter().all(|mask| mask.row(sequence, query)[key])
    }
}

impl BoolMask {
    /// For every sequence, queries × keys booleans, row after row, sequence after sequence.
    ///
    /// # Panics
    /// If the number of booleans does not match.
    pub fn new(queries: &Ragged, keys: &Ragged, allowed: Vec<bool>) -> Result<BoolMask, MaskError> {
        let (a, b) = (queries.sequences(), keys.sequences());
        assert_eq!(a, b, "BoolMask: {a} sequences of queries and {b} of keys");
        let mut starts = Vec::with_capacity(a);
        let mut end = 0;
        for (n_queries, n_keys) in queries.lengths().zip(keys.lengths()) {
            starts.push(end);
            end += n_queries * n_keys;
        }
        assert_eq!(
            allowed.len(),
            end,
            "BoolMask: {} booleans for {end} pairs of query and key",
            allowed.len()
        );
        let table = Table { queries: queries.clone(), keys: keys.clone(), starts, allowed };
        let mask = BoolMask { table: Arc::new(table) };
        Mask::full().allowed(mask.clone()).check(queries, keys)?;
        Ok(mask)
    }

    fn row(&self, sequence: usize, query: usize) -> &[bool] {
        let n_keys = self.table.keys.length(sequence);
        let start = self.table.starts[sequence] + query * n_keys;
        &self.table.allowed[start..start + n_keys]
    }

    fn expect_sequences(&self, queries: &Ragged, keys: &Ragged) {
        let Table { queries: own_queries, keys: own_keys, .. } = &*self.table;
        assert!(
            own_queries == queries && own_keys == keys,
            "attention: the boolean mask is for {own_queries:?} and {own_keys:?}, not for {queries:?} and {keys:?}"
        );
    }
}
