//! Sequences of different lengths laid end to end: a batch without padding.

use std::ops::Range;
use std::sync::Arc;

/// Where each sequence of a batch begins and ends among the rows of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ragged {
    /// `offsets[i]..offsets[i + 1]` are the rows of sequence `i`.
    offsets: Arc<[usize]>,
}

impl Ragged {
    /// Sequences of these lengths, in this order.
    pub fn from_lengths(lengths: impl IntoIterator<Item = usize>) -> Ragged {
        let mut offsets = vec![0];
        let mut end = 0;
        for length in lengths {
            end += length;
            offsets.push(end);
        }
        Ragged { offsets: offsets.into() }
    }

    /// How many sequences there are.
    #[inline]
    pub fn sequences(&self) -> usize {
        self.offsets.len() - 1
    }

    /// How many rows they have together.
    #[inline]
    pub fn tokens(&self) -> usize {
        self.offsets[self.sequences()]
    }

    /// The rows of sequence `i`.
    #[inline]
    pub fn range(&self, i: usize) -> Range<usize> {
        self.offsets[i]..self.offsets[i + 1]
    }

    /// Which sequence row `row` belongs to.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn sequence_of(&self, row: usize) -> usize {
        assert!(row < self.tokens(), "sequence_of: row {row} of {} tokens", self.tokens());
        self.offsets.partition_point(|&offset| offset <= row) - 1
    }

    /// The length of sequence `i`.
    #[inline]
    pub fn length(&self, i: usize) -> usize {
        self.range(i).len()
    }

    /// The lengths in order.
    #[inline]
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranges().map(|range| range.len())
    }

    /// The row ranges in order.
    #[inline]
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        (0..self.sequences()).map(|i| self.range(i))
    }

    /// The longest length; 0 for an empty batch.
    #[inline]
    pub fn longest(&self) -> usize {
        self.lengths().max().unwrap_or(0)
    }

    /// For every row its position within its sequence, counted from 0.
    #[inline]
    pub fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranges().flat_map(|range| 0..range.len())
    }
}
