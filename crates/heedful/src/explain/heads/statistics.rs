//! Statistics of a head's attention, averaged over all queries of a corpus.
//!
//! ```text
//! entropy      −Σ_j w_j log₂ w_j          bits; 0: all weight on one token, log₂ n: uniform over n tokens
//! confidence   max_j w_j
//! distance     Σ_j w_j |i − j|
//! previous     w_{i−1}     same  w_i     next  w_{i+1}      over the queries that can attend to such a key
//! separator    Σ w_j over punctuation, <bos> and <eos>
//! ```
//!
//! Queries i and keys j are counted from 0. In self attention both are positions in the same sequence: query
//! i of a decoder is its input i, where `<bos>` is input 0, and predicts the next token. In cross attention
//! query i predicts target token i and key j is source token j, so `same` is the diagonal.

use serde::Serialize;

use crate::layers::AttentionRole;

/// Average attention statistics of one head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HeadStatistics {
    /// The number of queries in the average.
    pub queries: u64,
    /// The entropy of the weights, in bits.
    pub entropy: f64,
    /// The largest weight.
    pub confidence: f64,
    /// The mean distance to the attended tokens.
    pub distance: f64,
    /// The mean weight of the previous token; `None` if no query has one.
    pub previous: Option<f64>,
    /// The mean weight of the token itself; `None` if no query has one.
    pub same: Option<f64>,
    /// The mean weight of the next token; `None` if no query can attend to it, as in a decoder.
    pub next: Option<f64>,
    /// The mean weight of punctuation and special tokens.
    pub separator: f64,
}

/// Running sums for [`HeadStatistics`].
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    queries: u64,
    entropy: f64,
    confidence: f64,
    distance: f64,
    separator: f64,
    previous: RunningMean,
    same: RunningMean,
    next: RunningMean,
}

/// The mean weight of a key, over the queries that can attend to it.
#[derive(Clone, Copy, Debug, Default)]
struct RunningMean {
    sum: f64,
    count: u64,
}

impl RunningMean {
    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }
}

impl Tally {
    /// Adds a matrix of queries × keys; `is_separator` has one element per key.
    pub(super) fn add(&mut self, kind: AttentionRole, weights: &[f32], is_separator: &[bool]) {
        let keys = is_separator.len();
        for (i, row) in weights.chunks_exact(keys.max(1)).enumerate() {
            self.queries += 1;
            let mut largest = 0.0_f64;
            for (j, (&weight, &is_separator)) in row.iter().zip(is_separator).enumerate() {
                let weight = f64::from(weight);
                if weight > 0.0 {
                    self.entropy -= weight * weight.log2();
                    self.distance += weight * i.abs_diff(j) as f64;
                }
                if is_separator {
                    self.separator += weight;
                }
                largest = largest.max(weight);
            }
            self.confidence += largest;
            let attends_to_future = kind != AttentionRole::DecoderSelf;
            let keys_of_interest = [
                (&mut self.previous, i.checked_sub(1)),
                (&mut self.same, Some(i)),
                (&mut self.next, Some(i + 1).filter(|_| attends_to_future)),
            ];
            for (mean, key) in keys_of_interest {
                if let Some(weight) = key.and_then(|key| row.get(key)) {
                    mean.sum += f64::from(*weight);
                    mean.count += 1;
                }
            }
        }
    }

    pub(super) fn mean(&self) -> HeadStatistics {
        let queries = self.queries.max(1) as f64;
        HeadStatistics {
            queries: self.queries,
            entropy: self.entropy / queries,
            confidence: self.confidence / queries,
            distance: self.distance / queries,
            previous: self.previous.mean(),
            same: self.same.mean(),
            next: self.next.mean(),
            separator: self.separator / queries,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-7, "{found} is not {expected}");
    }

    /// Row 0: all on itself; row 1: half on the first and half on the third token; row 2: a quarter, a
    /// quarter and a half.
    const WEIGHTS: [f32; 9] = [1.0, 0.0, 0.0, 0.5, 0.0, 0.5, 0.25, 0.25, 0.5];

    #[test]
    fn statistics_match_those_computed_by_hand() {
        let mut tally = Tally::default();
        tally.add(AttentionRole::EncoderSelf, &WEIGHTS, &[false, false, true]);
        let found = tally.mean();
        assert_eq!(found.queries, 3);
        // 0, 1 and 1.5 bits.
        close(found.entropy, 2.5 / 3.0);
        close(found.confidence, 2.0 / 3.0);
        // 0; ½·1 + ½·1; ¼·2 + ¼·1 + ½·0.
        close(found.distance, (0.0 + 1.0 + 0.75) / 3.0);
        // The first query has no token before it, the last none after it.
        close(found.previous.expect("two queries have one"), (0.5 + 0.25) / 2.0);
        close(found.same.expect("all have one"), (1.0 + 0.0 + 0.5) / 3.0);
        close(found.next.expect("two queries have one"), (0.0 + 0.5) / 2.0);
        close(found.separator, (0.0 + 0.5 + 0.5) / 3.0);
    }

    #[test]
    fn a_decoder_has_no_next_token_and_every_query_weighs_the_same() {
        let mut tally = Tally::default();
        tally.add(AttentionRole::DecoderSelf, &[1.0, 0.0, 1.0, 0.0], &[true, false]);
        tally.add(AttentionRole::DecoderSelf, &[1.0], &[true]);
        let found = tally.mean();
        assert_eq!((found.queries, found.next), (3, None));
        close(found.separator, 1.0);
        close(found.same.expect("all have one"), 2.0 / 3.0);
        close(found.previous.expect("one query has one"), 1.0);
    }

    #[test]
    fn a_target_longer_than_its_source_has_queries_without_a_same_token() {
        let mut tally = Tally::default();
        tally.add(AttentionRole::Cross, &[1.0, 1.0, 1.0], &[false]);
        let found = tally.mean();
        close(found.same.expect("the first query has one"), 1.0);
        close(found.previous.expect("the second query has one"), 1.0);
        assert_eq!(found.next, None);
        close(found.distance, 1.0);
    }
}
