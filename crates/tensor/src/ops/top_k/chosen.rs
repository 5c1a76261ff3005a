//! The k best of some columns of `x Wᵀ + b`, where every few rows have columns of their own: a vocabulary shortlist.
//!
//! ```text
//! log p_j = x_j − log Σ_{k chosen} e^{x_k}        −∞ for a column that is not chosen
//! ```
//!
//! The rows of `W` that are chosen are copied once into a small matrix, packed as `W` itself is: integers and their scales are
//! copied, not rounded again. A score therefore has the bits that it has among all columns.

use std::ops::Range;

use super::{Projection, TopK, cpu};
use crate::{Compute, Device, Rounding, Tensor};

/// Some of the columns of `x Wᵀ + b`.
pub struct ChosenColumns {
    /// Which ones, sorted.
    columns: Vec<u32>,
    weight: cpu::ChosenWeight,
    /// Columns of all.
    width: usize,
}

/// Some rows of `x`, and the columns that they have scores for.
pub struct ChosenPart<'a> {
    /// The rows. Parts follow each other from the first row to the last.
    pub rows: Range<usize>,
    /// Their columns.
    pub columns: &'a ChosenColumns,
}

impl ChosenColumns {
    /// Copies the rows of the weight (`[columns, k]`) that are chosen, and their biases, for products as `compute` says.
    ///
    /// # Panics
    /// If the columns are not sorted, without repetition, and within the weight.
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
            "ChosenColumns: {} columns of a weight of {width}×{k} are not sorted, or not within it",
            columns.len()
        );
        let weight = cpu::ChosenWeight::new(projection, &columns, compute.precision);
        ChosenColumns { columns, weight, width }
    }

    /// Which ones, sorted.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    pub(super) fn weight(&self) -> &cpu::ChosenWeight {
        &self.weight
    }

    fn place(&self, column: u32) -> Option<usize> {
        self.columns.binary_search(&column).ok()
    }

    /// The score of a column in a row of those that are chosen.
    pub(super) fn score(&self, scores: &[f32], column: u32) -> f32 {
        self.place(column).map_or(f32::NEG_INFINITY, |place| scores[place])
    }
}

impl TopK {
    /// As [`TopK::find`] for the scores `x Wᵀ + b` of chosen columns. Also keeps the scores of some columns of some rows, for
    /// [`TopK::other`]: −∞ for a column that is not chosen.
    pub fn find_in_chosen(
        &mut self,
        x: &Tensor,
        parts: &[ChosenPart<'_>],
        count: usize,
        others: &[(usize, u32)],
        rounding: Rounding,
    ) {
        check(x, parts);
        self.clear(x.rows(), count);
        self.others.extend(others.iter().map(|&(row, column)| (row, column, f32::NEG_INFINITY)));
        self.others.sort_unstable_by_key(|&(row, column, _)| (row, column));
        cpu::find_in_chosen(x, parts, rounding, self);
    }
}

/// The scores `x Wᵀ + b` of all columns: −∞ for those that are not chosen.
pub fn project_chosen(x: &Tensor, parts: &[ChosenPart<'_>]) -> Tensor {
    check(x, parts);
    let width = parts.first().map_or(0, |part| part.columns.width);
    Tensor::new(cpu::project_chosen(x, parts, width))
}

fn check(x: &Tensor, parts: &[ChosenPart<'_>]) {
    assert_eq!(x.device(), Device::Cpu, "chosen columns: their scores are computed on the CPU");
    let mut end = 0;
    for ChosenPart { rows, columns } in parts {
        let (k, width) = (columns.weight.k(), columns.width);
        assert_eq!(x.width(), k, "chosen columns: x is {:?}, W is {width}×{k}", x.shape());
        assert_eq!(rows.start, end, "chosen columns: parts do not follow each other");
        end = rows.end;
    }
    assert_eq!(x.rows(), end, "chosen columns: parts of {end} rows, x is {:?}", x.shape());
}
