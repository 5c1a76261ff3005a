//! Parameters that are not treated as the others: norms, biases, and what is not learned.

use std::ops::Range;

use super::entry::{Entry, Kind};
use super::{Init, Params};

impl Params {
    /// The places of norms and biases: parameters of one row that begin as constants. In order.
    pub(crate) fn norms_and_biases(&self) -> Vec<Range<usize>> {
        let is_one = |entry: &&Entry| entry.rows == 1 && matches!(entry.init, Init::Constant(_));
        self.store.flat().entries.iter().filter(is_one).map(Entry::range).collect()
    }

    /// The places of what is not learned. In order.
    pub(crate) fn statistics(&self) -> Vec<Range<usize>> {
        let is_one = |entry: &&Entry| matches!(entry.kind, Kind::Statistic);
        self.store.flat().entries.iter().filter(is_one).map(Entry::range).collect()
    }

    /// Whether some of the numbers are not learned but are what was seen of batches, such as the running means of batch norms.
    pub fn has_statistics(&self) -> bool {
        !self.statistics().is_empty()
    }
}
