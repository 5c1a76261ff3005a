//! The attention weights that a pass records, and their limit.

use heedful_tensor::Ragged;
use heedful_tensor::ops::ReturnWeights;

use super::{AttentionMap, AttentionRole};

/// The attention weights that a pass records.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    rows: RecordedRows,
    values: RecordedValues,
    /// The role of the layers whose weights are recorded; `None` for all.
    role: Option<AttentionRole>,
    maps: Vec<AttentionMap>,
    /// Number of requested weights, recorded or not.
    weights: usize,
    /// The first layer that exceeded the limit.
    overflow: Option<TooManyWeights>,
}

/// The queries whose weights are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedRows {
    First,
    All,
}

/// The values that are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordedValues {
    Weights,
    WeightsAndScores,
}

/// Maximum number of weights and scores that a pass records: 256 MiB.
const MAX_WEIGHTS: usize = 1 << 26;

/// More attention weights than can be recorded: their number is quadratic in the text's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "all attention weights of {queries} queries and {keys} keys would be {weights} values, above the limit of {MAX_WEIGHTS}: \
     take a shorter text, or cut it into sentences"
)]
pub struct TooManyWeights {
    /// Queries of the layer that exceeded the limit.
    pub queries: usize,
    /// Its keys.
    pub keys: usize,
    /// Number of its weights and scores plus those of the layers before it.
    pub weights: usize,
}

impl crate::error::Cause for TooManyWeights {}

impl TooManyWeights {
    /// Checks whether this many weights may be recorded, of attention matrices of at most `queries` × `keys`.
    pub fn check([queries, keys]: [usize; 2], weights: usize) -> Result<(), TooManyWeights> {
        if weights > MAX_WEIGHTS { Err(TooManyWeights { queries, keys, weights }) } else { Ok(()) }
    }
}

impl Recording {
    pub(super) fn new(rows: RecordedRows, values: RecordedValues, role: Option<AttentionRole>) -> Recording {
        Recording { rows, values, role, maps: Vec::new(), weights: 0, overflow: None }
    }

    /// Which weights an attention layer with `heads` heads must return. A layer that would exceed the limit
    /// is not recorded.
    pub(super) fn weights(
        &mut self,
        role: AttentionRole,
        heads: usize,
        queries: &Ragged,
        keys: &Ragged,
    ) -> ReturnWeights {
        if self.role.is_some_and(|recorded| recorded != role) {
            return ReturnWeights::None;
        }
        let first = self.rows == RecordedRows::First;
        let rows = |queries: usize| if first { queries.min(1) } else { queries };
        let sizes = queries.lengths().zip(keys.lengths()).map(|(queries, keys)| rows(queries) * keys);
        let kinds = if self.values == RecordedValues::WeightsAndScores { 2 } else { 1 };
        self.weights = self.weights.saturating_add(kinds * heads * sizes.sum::<usize>());
        if self.weights > MAX_WEIGHTS {
            let (queries, keys) = (queries.longest(), keys.longest());
            self.overflow.get_or_insert(TooManyWeights { queries, keys, weights: self.weights });
            return ReturnWeights::None;
        }
        match (self.rows, self.values) {
            (RecordedRows::First, _) => ReturnWeights::FirstQuery,
            (RecordedRows::All, RecordedValues::Weights) => ReturnWeights::All,
            (RecordedRows::All, RecordedValues::WeightsAndScores) => ReturnWeights::WithScores,
        }
    }

    pub(super) fn record(&mut self, mut map: AttentionMap) {
        if self.rows == RecordedRows::First {
            map.queries = Ragged::from_lengths(map.queries.lengths().map(|queries| queries.min(1)));
        }
        self.maps.push(map);
    }

    /// The maps recorded so far, in the order of computation; an error if they exceeded the limit.
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
        assert_eq!(pass.weights(AttentionRole::Cross, 8, &long, &long), ReturnWeights::None);
        let error = pass.take_attention().expect_err("too many");
        assert_eq!(error, TooManyWeights { queries: 60_000, keys: 60_000, weights: 28_800_000_000 });
        assert!(error.to_string().contains("shorter text"), "{error}");
        // The limit applies to all layers together.
        let some = Ragged::from_lengths([4096]);
        assert_eq!(
            [0; 3].map(|_| pass.weights(AttentionRole::Cross, 2, &some, &some)),
            [ReturnWeights::All, ReturnWeights::All, ReturnWeights::None]
        );
        let mut scored = Pass::inference(DType::F32).recording_scores();
        assert_eq!(
            [0; 2].map(|_| scored.weights(AttentionRole::Cross, 2, &some, &some)),
            [ReturnWeights::WithScores, ReturnWeights::None]
        );
        let mut first = Pass::inference(DType::F32).recording_first_queries();
        assert_eq!(first.weights(AttentionRole::Cross, 8, &long, &long), ReturnWeights::FirstQuery);
        assert_eq!(
            Pass::inference(DType::F32).weights(AttentionRole::Cross, 8, &long, &long),
            ReturnWeights::None
        );
    }
}
