//! Frozen parameters, which updates do not change.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::entry::Kind;
use super::{Flat, Param, Params};

impl Param {
    /// Freezes it: updates leave its values unchanged, to the bit; its gradient counts as zero, and it does
    /// not decay. Optimizers must be created afterwards.
    pub fn freeze(&self) {
        self.store.flat().frozen[self.index].store(true, Ordering::Release);
    }

    /// Whether it is frozen.
    pub fn is_frozen(&self) -> bool {
        self.store.flat().is_frozen(self.index)
    }
}

impl Params {
    /// Number of trainable elements, without frozen ones.
    pub fn trained(&self) -> usize {
        let flat = self.store.flat();
        let entries = flat.entries.iter().enumerate();
        let trained = entries
            .filter(|(index, entry)| !matches!(entry.kind, Kind::Statistic) && !flat.is_frozen(*index));
        trained.map(|(_, entry)| entry.rows * entry.width).sum()
    }

    /// The ranges of frozen parameters, in order.
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
