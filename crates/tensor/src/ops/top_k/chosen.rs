//! Top-k over a subset of the columns of `x Wᵀ + b`, with a different subset for each group of rows: a
//! vocabulary shortlist.
//!
//! ```text
//! log p_j = x_j − log Σ_{k chosen} e^{x_k}        −∞ for columns that are not chosen
//! ```
//!
//! The chosen rows of `W` are copied once into a small matrix, packed as `W` itself is: int8 values and their
//! scales are copied, not quantized again. A score therefore has the same bits as in the full product.

use std::ops::Range;

use super::{Projection, TopK, cpu};
use crate::{Compute, Device, Rounding, Tensor};

/// A subset of the columns of `x Wᵀ + b`.
pub struct ChosenColumns {
    /// Their indices, sorted.
    columns: Vec<u32>,
    weight: cpu::ChosenWeight,
    /// The number of all columns.
    width: usize,
}

/// A group of consecutive rows of `x`, and the columns that they have scores for.
pub struct ChosenGroup<'a> {
    /// The rows. The groups cover all rows in order, without gaps.
    pub rows: Range<usize>,
    /// Their columns.
    pub columns: &'a ChosenColumns,
}

impl ChosenColumns {
    /// Copies the chosen rows of the weight (`[columns, k]`) and their biases, packed for `compute`.
    ///
    /// # Panics
    /// If the columns are not strictly increasing, or not within the weight.
    pub fn new<'a>(
        projection: impl Into<Projection<'a>>,
        columns: Vec<u32>,
        compute: Compute,
    ) -> ChosenColumns {
        let projection = projection.into();
        let [width, k] = projection.weight.shape();
        let is_sorted = columns.is_sorted_by(|a, b| a < b);
        assert!(
            is_sorted && columns.last().is_none_or(|&last| (last as usize) < width),
            "ChosenColumns: {} columns of a weight of {width}×{k} must be strictly increasing and within it",
            columns.len()
        );
        let weight = cpu::ChosenWeight::new(projection, &columns, compute.precision);
        ChosenColumns { columns, weight, width }
    }

    /// Their indices, sorted.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    pub(super) fn weight(&self) -> &cpu::ChosenWeight {
        &self.weight
    }

    fn index_of(&self, column: u32) -> Option<usize> {
        self.columns.binary_search(&column).ok()
    }

    /// The score of a column, given a row of scores of the chosen columns.
    pub(super) fn score(&self, scores: &[f32], column: u32) -> f32 {
        self.index_of(column).map_or(f32::NEG_INFINITY, |index| scores[index])
    }
}

impl TopK {
    /// As [`TopK::find`] for the scores `x Wᵀ + b` of chosen columns. Also keeps the scores of the `extra`
    /// rows and columns, for [`TopK::extra`]: −∞ for columns that are not chosen.
    pub fn find_in_chosen(
        &mut self,
        x: &Tensor,
        groups: &[ChosenGroup<'_>],
        count: usize,
        extra: &[(usize, u32)],
        rounding: Rounding,
    ) {
        check(x, groups);
        self.clear(x.rows(), count);
        self.extra.extend(extra.iter().map(|&(row, column)| (row, column, f32::NEG_INFINITY)));
        self.extra.sort_unstable_by_key(|&(row, column, _)| (row, column));
        cpu::find_in_chosen(x, groups, rounding, self);
    }
}

/// The scores `x Wᵀ + b` of all columns, −∞ for those that are not chosen.
pub fn project_chosen(x: &Tensor, groups: &[ChosenGroup<'_>]) -> Tensor {
    check(x, groups);
    let width = groups.first().map_or(0, |group| group.columns.width);
    Tensor::new(cpu::project_chosen(x, groups, width))
}

fn check(x: &Tensor, groups: &[ChosenGroup<'_>]) {
    assert_eq!(x.device(), Device::Cpu, "chosen columns: only the CPU computes their scores");
    let mut end = 0;
    for ChosenGroup { rows, columns } in groups {
        let (k, width) = (columns.weight.k(), columns.width);
        assert_eq!(x.width(), k, "chosen columns: x is {:?}, W is {width}×{k}", x.shape());
        assert_eq!(rows.start, end, "chosen columns: groups must be consecutive");
        end = rows.end;
    }
    assert_eq!(x.rows(), end, "chosen columns: groups of {end} rows, x is {:?}", x.shape());
}
