//! Parameters with special treatment: norms, biases and statistics.

use std::ops::Range;

use super::entry::{Entry, Kind};
use super::{Init, Params};

impl Params {
    /// The ranges of norms and biases in order: parameters of one row with constant initial values.
    pub(crate) fn norms_and_biases(&self) -> Vec<Range<usize>> {
        let is_one = |entry: &&Entry| entry.rows == 1 && matches!(entry.init, Init::Constant(_));
        self.store.flat().entries.iter().filter(is_one).map(Entry::range).collect()
    }

    /// The ranges of statistics in order, which are not learned.
    pub(crate) fn statistics(&self) -> Vec<Range<usize>> {
        let is_one = |entry: &&Entry| matches!(entry.kind, Kind::Statistic);
        self.store.flat().entries.iter().filter(is_one).map(Entry::range).collect()
    }

    /// Whether there are statistics of batches, such as the running means of batch norms.
    pub fn has_statistics(&self) -> bool {
        !self.statistics().is_empty()
    }
}
