//! Sequences of different lengths concatenated: a packed batch without padding inside.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::cuda;

/// Where each sequence of a batch begins and ends among the rows of a tensor.
#[derive(Clone, Debug)]
pub struct Ragged {
    offsets: Arc<Offsets>,
}

struct Offsets {
    /// `rows[i]..rows[i + 1]` are the rows of sequence `i`.
    rows: Box<[usize]>,
    /// Number of real sequences; the padding sequences follow them.
    real: usize,
}

impl PartialEq for Ragged {
    fn eq(&self, other: &Ragged) -> bool {
        self.offsets.rows == other.offsets.rows
    }
}

impl Eq for Ragged {}

impl fmt::Debug for Offsets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.fmt(f)
    }
}

impl Ragged {
    /// Whether both share their offsets because one is a clone of the other; cheaper than comparing lengths.
    pub(crate) fn is_same(&self, other: &Ragged) -> bool {
        Arc::ptr_eq(&self.offsets, &other.offsets)
    }

    /// Uploads the offsets (u32). Empty sequences pad them to [`Ragged::padded_sequences`].
    pub(crate) fn on_gpu(&self) -> cuda::Buffer {
        let rows = self.offsets.rows.iter().map(|&row| row as u32);
        let ends = std::iter::repeat(self.tokens() as u32);
        cuda::upload(&rows.chain(ends).take(self.padded_sequences() + 1).collect::<Vec<u32>>())
    }

    /// The number of sequences that kernels are launched for, rounded up to a bucket so that similar batches
    /// share it.
    pub(crate) fn padded_sequences(&self) -> usize {
        cuda::round_up_to_bucket(self.sequences())
    }

    /// Sequences of these lengths, in this order.
    pub fn from_lengths(lengths: impl IntoIterator<Item = usize>) -> Ragged {
        let mut offsets = vec![0];
        let mut end = 0;
        for length in lengths {
            end += length;
            offsets.push(end);
        }
        let real = offsets.len() - 1;
        Ragged { offsets: Arc::new(Offsets { rows: offsets.into(), real }) }
    }

    /// Appends padding sequences of the given lengths. The random draws of the real sequences do not depend
    /// on them.
    pub fn padded(&self, lengths: impl IntoIterator<Item = usize>) -> Ragged {
        let all = Ragged::from_lengths(self.lengths().chain(lengths));
        Ragged { offsets: Arc::new(Offsets { rows: all.offsets.rows.clone(), real: self.offsets.real }) }
    }

    /// The same number of sequences with other lengths, computed from these; padding sequences stay padding.
    pub fn with_lengths(&self, length: impl Fn(usize) -> usize) -> Ragged {
        let all = Ragged::from_lengths(self.lengths().map(length));
        Ragged { offsets: Arc::new(Offsets { rows: all.offsets.rows.clone(), real: self.offsets.real }) }
    }

    /// Number of real sequences; the padding sequences follow them.
    pub fn real_sequences(&self) -> usize {
        self.offsets.real
    }

    /// Number of rows and longest length of the real sequences, without padding.
    pub(crate) fn real_sizes(&self) -> [usize; 2] {
        let Offsets { rows, real } = &*self.offsets;
        [rows[*real], self.lengths().take(*real).max().unwrap_or(0)]
    }

    /// Number of sequences, padding included.
    #[inline]
    pub fn sequences(&self) -> usize {
        self.offsets.rows.len() - 1
    }

    /// Number of rows of all sequences.
    #[inline]
    pub fn tokens(&self) -> usize {
        self.offsets.rows[self.sequences()]
    }

    /// The rows of sequence `i`.
    #[inline]
    pub fn range(&self, i: usize) -> Range<usize> {
        self.offsets.rows[i]..self.offsets.rows[i + 1]
    }

    /// The sequence that contains row `row`.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn sequence_of(&self, row: usize) -> usize {
        assert!(row < self.tokens(), "sequence_of: row {row} of {} tokens", self.tokens());
        self.offsets.rows.partition_point(|&offset| offset <= row) - 1
    }

    /// The length of sequence `i`.
    #[inline]
    pub fn length(&self, i: usize) -> usize {
        self.range(i).len()
    }

    /// All lengths in order.
    #[inline]
    pub fn lengths(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranges().map(|range| range.len())
    }

    /// All row ranges in order.
    #[inline]
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        (0..self.sequences()).map(|i| self.range(i))
    }

    /// The longest length; 0 for an empty batch.
    #[inline]
    pub fn longest(&self) -> usize {
        self.lengths().max().unwrap_or(0)
    }

    /// The position of every row within its sequence, counted from 0.
    #[inline]
    pub fn positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.ranges().flat_map(|range| 0..range.len())
    }
}
