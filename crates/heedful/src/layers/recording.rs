//! The attention weights that a pass records, and how many it may.

use heedful_tensor::Ragged;
use heedful_tensor::ops::Weights;

use super::{AttentionMap, AttentionRole};

/// The attention weights that a pass records.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    rows: RecordedRows,
    numbers: RecordedNumbers,
    /// The only layers whose weights are recorded; `None` for all.
    role: Option<AttentionRole>,
    maps: Vec<AttentionMap>,
    /// Weights that were asked for, recorded or not.
    weights: usize,
    /// The first layer whose weights were too many.
    overflow: Option<TooManyWeights>,
}

/// Of which queries weights are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedRows {
    First,
    All,
}

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedNumbers {
    Weights,
    WeightsAndScores,
}

/// The most weights and scores that a pass records: 256 MiB of them.
const MOST_WEIGHTS: usize = 1 << 26;

/// More attention weights than can be recorded: they grow with the square of a text's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "all attention weights of {queries} queries and {keys} keys would be {weights} numbers, above the limit of {MOST_WEIGHTS}: \
     take a shorter text, or cut it into sentences"
)]
pub struct TooManyWeights {
    /// Queries of the layer that did not fit.
    pub queries: usize,
    /// Its keys.
    pub keys: usize,
    /// Its weights and scores, with those of the layers before it.
    pub weights: usize,
}

impl crate::error::Cause for TooManyWeights {}

impl TooManyWeights {
    /// Whether so many numbers may be kept of attention that is `queries` × `keys` at most.
    pub fn check([queries, keys]: [usize; 2], weights: usize) -> Result<(), TooManyWeights> {
        if weights > MOST_WEIGHTS { Err(TooManyWeights { queries, keys, weights }) } else { Ok(()) }
    }
}

impl Recording {
    pub(super) fn new(
        rows: RecordedRows,
        numbers: RecordedNumbers,
        role: Option<AttentionRole>,
    ) -> Recording {
        Recording { rows, numbers, role, maps: Vec::new(), weights: 0, overflow: None }
    }

    /// Whether attention by `heads` heads returns its weights. None of a layer are recorded that would exceed the limit.
    pub(super) fn weights(
        &mut self,
        role: AttentionRole,
        heads: usize,
        queries: &Ragged,
        keys: &Ragged,
    ) -> Weights {
        if self.role.is_some_and(|wanted| wanted != role) {
            return Weights::Discard;
        }
        let first = self.rows == RecordedRows::First;
        let rows = |queries: usize| if first { queries.min(1) } else { queries };
        let sizes = queries.lengths().zip(keys.lengths()).map(|(queries, keys)| rows(queries) * keys);
        let kinds = if self.numbers == RecordedNumbers::WeightsAndScores { 2 } else { 1 };
        self.weights = self.weights.saturating_add(kinds * heads * sizes.sum::<usize>());
        if self.weights > MOST_WEIGHTS {
            let (queries, keys) = (queries.longest(), keys.longest());
            self.overflow.get_or_insert(TooManyWeights { queries, keys, weights: self.weights });
            return Weights::Discard;
        }
        match (self.rows, self.numbers) {
            (RecordedRows::First, _) => Weights::First,
            (RecordedRows::All, RecordedNumbers::Weights) => Weights::Keep,
            (RecordedRows::All, RecordedNumbers::WeightsAndScores) => Weights::Scored,
        }
    }

    pub(super) fn record(&mut self, mut map: AttentionMap) {
        if self.rows == RecordedRows::First {
            map.queries = Ragged::from_lengths(map.queries.lengths().map(|queries| queries.min(1)));
        }
        self.maps.push(map);
    }

    /// What is recorded so far, in the order of computation; an error if it was too much.
    pub(super) fn take(&mut self) -> Result<Vec<AttentionMap>, TooManyWeights> {
        self.weights = 0;
        let maps = std::mem::take(&mut self.maps);
        self.overflow.take().map_or(Ok(maps), Err)
    }
}

#[cfg(test)]
mod tests {
    use heedful_tensor::DType;

    use super::*;
    use crate::layers::Pass;

    #[test]
    fn more_weights_than_the_limit_are_an_error_and_not_an_allocation() {
        let long = Ragged::from_lengths([60_000]);
        let mut pass = Pass::inference(DType::F32).recording();
        assert_eq!(pass.weights(AttentionRole::Cross, 8, &long, &long), Weights::Discard);
        let error = pass.take_attention().expect_err("too many");
        assert_eq!(error, TooManyWeights { queries: 60_000, keys: 60_000, weights: 28_800_000_000 });
        assert!(error.to_string().contains("shorter text"), "{error}");
        // Layers count together.
        let some = Ragged::from_lengths([4096]);
        assert_eq!(
            [0; 3].map(|_| pass.weights(AttentionRole::Cross, 2, &some, &some)),
            [Weights::Keep, Weights::Keep, Weights::Discard]
        );
        let mut scored = Pass::inference(DType::F32).recording_scores();
        assert_eq!(
            [0; 2].map(|_| scored.weights(AttentionRole::Cross, 2, &some, &some)),
            [Weights::Scored, Weights::Discard]
        );
        let mut first = Pass::inference(DType::F32).recording_first_queries();
        assert_eq!(first.weights(AttentionRole::Cross, 8, &long, &long), Weights::First);
        assert_eq!(
            Pass::inference(DType::F32).weights(AttentionRole::Cross, 8, &long, &long),
            Weights::Discard
        );
    }
}
