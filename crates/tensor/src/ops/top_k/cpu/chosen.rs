//! Top-k over chosen columns: one GEMM for each group of rows, whose scores are searched while they are in
//! cache.

use std::ops::Range;

use super::super::chosen::ChosenGroup;
use super::super::{NONE, Projection, Scored, TopK};
use super::best_of_row;
use crate::cpu::gemm::int8::{self, Int8Rows};
use crate::cpu::gemm::{Finish, Int8Matrix, Matrix, Output, Packed, multiply};
use crate::cpu::threads::{SharedMut, parallel, thread_count};
use crate::params::Orientation;
use crate::{Array, DType, Param, Precision, Rounding, Rows, Tensor};

/// The chosen rows of a weight, packed, and their biases.
pub(in crate::ops::top_k) struct ChosenWeight {
    rows: ChosenRows,
    bias: Option<Vec<f32>>,
}

enum ChosenRows {
    Float(Packed),
    Int8(Int8Matrix),
}

impl ChosenWeight {
    pub(in crate::ops::top_k) fn new(
        Projection { weight, bias }: Projection<'_>,
        columns: &[u32],
        precision: Precision,
    ) -> ChosenWeight {
        let chosen = |bias: &Param| columns.iter().map(|&column| bias.values()[column as usize]).collect();
        ChosenWeight { rows: ChosenRows::new(weight, columns, precision), bias: bias.map(chosen) }
    }

    /// The inner dimension of the GEMM.
    pub(in crate::ops::top_k) fn k(&self) -> usize {
        match &self.rows {
            ChosenRows::Float(packed) => packed.k(),
            ChosenRows::Int8(matrix) => matrix.k(),
        }
    }

    /// The scores of some rows.
    fn scores(&self, x: &Tensor, rows: Range<usize>) -> Array {
        let finish = Finish { bias: self.bias.as_deref(), ..Finish::NONE };
        match &self.rows {
            ChosenRows::Float(packed) => {
                let mut scores = Array::scratch(DType::F32, rows.len(), packed.n());
                let x = Matrix::of(x.array_as(packed.dtype)).rows(rows);
                multiply(x, packed, Output::over(&mut scores), finish);
                scores
            }
            ChosenRows::Int8(matrix) => {
                let mut scores = Array::scratch(DType::F32, rows.len(), matrix.n());
                let k = matrix.k();
                let values = &x.array_as(DType::F32).f32()[rows.start * k..rows.end * k];
                let rows = Int8Rows::new(values, k);
                int8::multiply(&rows, matrix, Output::over(&mut scores), finish);
                scores
            }
        }
    }
}

impl ChosenRows {
    fn new(weight: &Param, columns: &[u32], precision: Precision) -> ChosenRows {
        if precision == Precision::Int8 {
            return ChosenRows::Int8(weight.quantized(Orientation::Transposed).columns(columns));
        }
        let (k, all) = (weight.shape()[1], weight.values());
        let mut rows = Array::scratch(DType::F32, columns.len(), k);
        for (row, &column) in rows.f32_mut().chunks_exact_mut(k.max(1)).zip(columns) {
            row.copy_from_slice(&all[column as usize * k..][..k]);
        }
        ChosenRows::Float(Packed::new(Matrix::of(&rows).transposed(), precision.dtype(), Rows::Few))
    }
}

pub(in crate::ops::top_k) fn find_in_chosen(
    x: &Tensor,
    groups: &[ChosenGroup<'_>],
    rounding: Rounding,
    found: &mut TopK,
) {
    let (count, requested, extra_of_group) =
        (found.count, found.requested, extra_by_group(groups, &found.extra));
    let normalizers = SharedMut::new(&mut found.normalizers);
    let best = SharedMut::new(&mut found.best);
    let extra = SharedMut::new(&mut found.extra);
    each_group(x, groups, |number, ChosenGroup { rows, columns }| {
        let (scores, width) = (columns.weight().scores(x, rows.clone()), columns.columns().len());
        let row_of = |row: usize| &scores.f32()[(row - rows.start) * width..][..width];
        for row in rows.clone() {
            // SAFETY: every row belongs to one group, here and below.
            let best = unsafe { best.slice(row * count..(row + 1) * count) };
            let (first, rest) = best.split_at_mut(count.min(width));
            let normalizer = best_of_row(row_of(row), first, rounding, requested);
            for Scored { index, .. } in first {
                *index = columns.columns()[*index as usize];
            }
            rest.fill(NONE);
            // SAFETY: as above.
            unsafe { normalizers.set(row, normalizer) };
        }
        // SAFETY: every row belongs to one group, and so do its extra scores.
        for (row, column, score) in unsafe { extra.slice(extra_of_group[number].clone()) } {
            *score = columns.score(row_of(*row), *column);
        }
    });
}

/// The range of each group among the extra scores, which are sorted by row.
fn extra_by_group(groups: &[ChosenGroup<'_>], extra: &[(usize, u32, f32)]) -> Vec<Range<usize>> {
    let index = |row: usize| extra.partition_point(|&(other, ..)| other < row);
    groups.iter().map(|group| index(group.rows.start)..index(group.rows.end)).collect()
}

pub(in crate::ops::top_k) fn project_chosen(x: &Tensor, groups: &[ChosenGroup<'_>], width: usize) -> Array {
    let mut all = Array::scratch(DType::F32, x.rows(), width);
    all.f32_mut().fill(f32::NEG_INFINITY);
    let shared = SharedMut::new(all.f32_mut());
    each_group(x, groups, |_, ChosenGroup { rows, columns }| {
        let scores = columns.weight().scores(x, rows.clone());
        let columns = columns.columns();
        for (row, scores) in rows.clone().zip(scores.f32().chunks_exact(columns.len().max(1))) {
            // SAFETY: every row belongs to one group.
            let all = unsafe { shared.slice(row * width..(row + 1) * width) };
            for (&column, &score) in columns.iter().zip(scores) {
                all[column as usize] = score;
            }
        }
    });
    all
}

/// Calls `work` for every group: in parallel if there are enough groups for all threads, otherwise one after
/// the other, each on all threads.
fn each_group(x: &Tensor, groups: &[ChosenGroup<'_>], work: impl Fn(usize, &ChosenGroup<'_>) + Sync) {
    // Converted once, before the groups need it: the conversion is cached in `x`.
    if let Some(ChosenRows::Float(packed)) = groups.first().map(|group| &group.columns.weight().rows) {
        x.array_as(packed.dtype);
    }
    if groups.len() < thread_count() {
        groups.iter().enumerate().for_each(|(number, group)| work(number, group));
    } else {
        parallel(groups.len(), |number| work(number, &groups[number]));
    }
}
