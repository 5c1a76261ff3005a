//! Parameters that updates leave as they are.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::entry::Kind;
use super::{Flat, Param, Params};

impl Param {
    /// From here on updates leave its values as they are, to the bit: its gradient counts as zero, and it does not decay. Whoever
    /// makes updates must be made afterwards.
    pub fn freeze(&self) {
        self.store.flat().frozen[self.index].store(true, Ordering::Release);
    }

    /// Whether updates leave its values as they are.
    pub fn is_frozen(&self) -> bool {
        self.store.flat().is_frozen(self.index)
    }
}

impl Params {
    /// How many numbers there are to learn, without those that are frozen.
    pub fn trained(&self) -> usize {
        let flat = self.store.flat();
        let entries = flat.entries.iter().enumerate();
        let trained = entries
            .filter(|(index, entry)| !matches!(entry.kind, Kind::Statistic) && !flat.is_frozen(*index));
        trained.map(|(_, entry)| entry.rows * entry.width).sum()
    }

    /// The places of what keeps its values. In order.
    pub(crate) fn frozen(&self) -> Vec<Range<usize>> {
        let flat = self.store.flat();
        let entries = flat.entries.iter().enumerate();
        entries.filter(|(index, _)| flat.is_frozen(*index)).map(|(_, entry)| entry.range()).collect()
    }
}

impl Flat {
    pub(super) fn is_frozen(&self, index: usize) -> bool {
        self.frozen[index].load(Ordering::Acquire)
    }
}
