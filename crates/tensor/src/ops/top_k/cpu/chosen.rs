//! Top-k over chosen columns: every strip is multiplied with the rows that use it, and each row collects its
//! scores, in the order of its list, and searches them.

use std::ops::Range;

use super::super::chosen::{ChosenColumns, ChosenGroup, List, STRIP};
use super::super::{NONE, Projection, Scored, TopK};
use super::best_of_row;
use crate::cpu::gemm::int8::{self, Int8Rows};
use crate::cpu::gemm::{Finish, Int8Matrix, Matrix, Output, Packed, multiply};
use crate::cpu::threads::{SharedMut, parallel, thread_count};
use crate::params::Orientation;
use crate::{Array, DType, Precision, Rounding, Rows, Tensor};

/// Strips of an int8 matrix.
const STRIPS: usize = 16;

/// Strips of some rows of a weight, packed, and their biases.
pub(in crate::ops::top_k) struct ChosenWeight {
    strips: PackedStrips,
    /// Those of all strips; empty if there are none.
    bias: Vec<f32>,
}

enum PackedStrips {
    Float(Vec<Packed>),
    /// Each has [`STRIPS`]: together in memory, their scales and sums too, they are read faster.
    Int8(Vec<Int8Matrix>),
}

/// `x` in the type of a product.
#[allow(clippy::large_enum_variant, reason = "a step has one, on the stack; it is smaller on 32 bits")]
enum Left<'x> {
    Float(&'x Array),
    Int8(Int8Rows),
}

impl ChosenWeight {
    /// No strips.
    pub(in crate::ops::top_k) fn new(precision: Precision) -> ChosenWeight {
        let strips = match precision {
            Precision::Int8 => PackedStrips::Int8(Vec::new()),
            _ => PackedStrips::Float(Vec::new()),
        };
        ChosenWeight { strips, bias: Vec::new() }
    }

    /// Replaces a strip, or adds the next one. It has at most [`STRIP`] columns, and at least one; the last one is
    /// repeated to fill it, because whole strips are stored faster.
    pub(in crate::ops::top_k) fn set(
        &mut self,
        strip: usize,
        Projection { weight, bias }: Projection<'_>,
        columns: &[u32],
        precision: Precision,
    ) {
        let mut filled = [columns[columns.len() - 1]; STRIP];
        filled[..columns.len()].copy_from_slice(columns);
        if let Some(bias) = bias {
            let all = bias.values();
            self.bias.resize(self.bias.len().max((strip + 1) * STRIP), 0.0);
            for (bias, &column) in self.bias[strip * STRIP..].iter_mut().zip(&filled) {
                *bias = all[column as usize];
            }
        }
        match &mut self.strips {
            PackedStrips::Int8(matrices) => {
                let all = weight.quantized(Orientation::Transposed);
                if strip / STRIPS == matrices.len() {
                    matrices.push(all.zeros(STRIPS));
                }
                matrices[strip / STRIPS].set_strip(strip % STRIPS, &all, &filled);
            }
            PackedStrips::Float(strips) => {
                let (k, all) = (weight.shape()[1], weight.values());
                let mut rows = Array::scratch(DType::F32, STRIP, k);
                for (row, &column) in rows.f32_mut().chunks_exact_mut(k.max(1)).zip(&filled) {
                    row.copy_from_slice(&all[column as usize * k..][..k]);
                }
                let packed = Packed::new(Matrix::of(&rows).transposed(), precision.dtype(), Rows::Few);
                match strips.get_mut(strip) {
                    Some(old) => *old = packed,
                    None => strips.push(packed),
                }
            }
        }
    }

    /// The scores of some rows and strips, `[strip][row][STRIP]`. In int8 the strips are in one matrix.
    fn multiply(&self, left: &Left<'_>, rows: Range<usize>, strips: Range<usize>, out: &mut [f32]) {
        let bias = self.bias.get(strips.start * STRIP..strips.end * STRIP).unwrap_or_default();
        match (left, &self.strips) {
            (Left::Float(x), PackedStrips::Float(packed)) => {
                let x = Matrix::of(x).rows(rows);
                for (number, out) in out.chunks_exact_mut((x.rows * STRIP).max(1)).enumerate() {
                    let bias = bias.get(number * STRIP..(number + 1) * STRIP);
                    let finish = Finish { bias, ..Finish::NONE };
                    multiply(x, &packed[strips.start + number], Output::F32(out), finish);
                }
            }
            (Left::Int8(x), PackedStrips::Int8(matrices)) => {
                let first = strips.start % STRIPS;
                let (matrix, own) = (&matrices[strips.start / STRIPS], first..first + strips.len());
                int8::multiply_strips(x, rows, matrix, own, bias, out);
            }
            _ => unreachable!("all strips and x have one type"),
        }
    }
}

impl<'x> Left<'x> {
    fn new(x: &'x Tensor, precision: Precision) -> Left<'x> {
        match precision {
            Precision::Int8 => Left::Int8(Int8Rows::new(x.array_as(DType::F32).f32(), x.width())),
            _ => Left::Float(x.array_as(precision.dtype())),
        }
    }
}

pub(in crate::ops::top_k) fn find_in_chosen(
    x: &Tensor,
    chosen: &ChosenColumns<'_>,
    groups: &[ChosenGroup],
    rounding: Rounding,
    found: &mut TopK,
) {
    let (count, requested) = (found.count, found.requested);
    let first_extra: Vec<usize> =
        (0..=x.rows()).map(|row| found.extra.partition_point(|&(other, ..)| other < row)).collect();
    let normalizers = SharedMut::new(&mut found.normalizers);
    let best = SharedMut::new(&mut found.best);
    let extra = SharedMut::new(&mut found.extra);
    each_row(x, chosen, groups, |row, list, scores| {
        // SAFETY: this is called once for each row, here and below.
        let best = unsafe { best.slice(row * count..(row + 1) * count) };
        let (first, rest) = best.split_at_mut(count.min(scores.len()));
        let normalizer = best_of_row(scores, first, rounding, requested);
        for Scored { index, .. } in first {
            *index = list.columns[*index as usize];
        }
        rest.fill(NONE);
        // SAFETY: as above.
        unsafe { normalizers.set(row, normalizer) };
        // SAFETY: as above; every extra score belongs to one row.
        for (_, column, score) in unsafe { extra.slice(first_extra[row]..first_extra[row + 1]) } {
            *score = list.score(scores, *column);
        }
    });
}

pub(in crate::ops::top_k) fn project_chosen(
    x: &Tensor,
    chosen: &ChosenColumns<'_>,
    groups: &[ChosenGroup],
    width: usize,
) -> Array {
    let mut all = Array::scratch(DType::F32, x.rows(), width);
    all.f32_mut().fill(f32::NEG_INFINITY);
    let shared = SharedMut::new(all.f32_mut());
    each_row(x, chosen, groups, |row, list, scores| {
        // SAFETY: this is called once for each row.
        let all = unsafe { shared.slice(row * width..(row + 1) * width) };
        for (&column, &score) in list.columns.iter().zip(scores) {
            all[column as usize] = score;
        }
    });
    all
}

/// Calls `work` for every row, with its list and the scores of the list's columns.
fn each_row(
    x: &Tensor,
    chosen: &ChosenColumns<'_>,
    groups: &[ChosenGroup],
    work: impl Fn(usize, &List, &[f32]) + Sync,
) {
    let (plan, left) = (Plan::new(chosen, groups), Left::new(x, chosen.precision()));
    let mut scores = Array::scratch(DType::F32, plan.height, STRIP);
    let all = SharedMut::new(scores.f32_mut());
    parallel(plan.products.len(), |number| {
        let product = &plan.products[number];
        let first = product.first * STRIP;
        // SAFETY: every product has its own scores.
        let out = unsafe { all.slice(first..first + product.height() * STRIP) };
        chosen.weight().multiply(&left, product.rows.clone(), product.strips.clone(), out);
    });
    let scores = scores.f32();
    parallel(groups.len(), |number| {
        let (rows, list) = (&groups[number].rows, chosen.list(groups[number].list));
        let firsts = &plan.firsts[plan.groups[number]..][..list.strips.len()];
        let mut of_strips = vec![0.0; list.strips.len() * STRIP];
        let mut of_list = vec![0.0; list.columns.len()];
        for row in rows.clone() {
            for (scores_of_strip, first) in of_strips.chunks_exact_mut(STRIP).zip(firsts) {
                let first = (first + row - rows.start) * STRIP;
                scores_of_strip.copy_from_slice(&scores[first..first + STRIP]);
            }
            for (score, &place) in of_list.iter_mut().zip(&list.places) {
                *score = of_strips[place as usize];
            }
            work(row, list, &of_list);
        }
    });
}

/// Which rows are multiplied with which strips.
struct Plan {
    products: Vec<Product>,
    /// For each strip of each group, the first row of the group's scores.
    firsts: Vec<usize>,
    /// For each group, the index of its first strip in `firsts`.
    groups: Vec<usize>,
    /// Rows of [`STRIP`] scores.
    height: usize,
}

/// Consecutive rows and strips.
struct Product {
    rows: Range<usize>,
    strips: Range<usize>,
    /// The first row of its scores.
    first: usize,
}

impl Product {
    /// Rows of its scores.
    fn height(&self) -> usize {
        self.rows.len() * self.strips.len()
    }
}

/// Two products of a strip are one if at most this many rows between them do not need it.
const GAP: usize = 4;

impl Plan {
    fn new(chosen: &ChosenColumns<'_>, groups: &[ChosenGroup]) -> Plan {
        let mut heights = vec![0; chosen.strips()];
        let mut latest = vec![usize::MAX; chosen.strips()];
        let mut plan = Plan { products: Vec::new(), firsts: Vec::new(), groups: Vec::new(), height: 0 };
        for ChosenGroup { rows, list } in groups {
            plan.groups.push(plan.firsts.len());
            for &strip in &chosen.list(*list).strips {
                let height = &mut heights[strip];
                match plan.products.get_mut(latest[strip]) {
                    Some(product) if rows.start <= product.rows.end + GAP => {
                        *height += rows.end - product.rows.end;
                        product.rows.end = rows.end;
                    }
                    _ => {
                        latest[strip] = plan.products.len();
                        let (strips, first) = (strip..strip + 1, *height);
                        plan.products.push(Product { rows: rows.clone(), strips, first });
                        *height += rows.len();
                    }
                }
                plan.firsts.push(*height - rows.len());
            }
        }
        let mut starts = heights;
        for start in &mut starts {
            plan.height += std::mem::replace(start, plan.height);
        }
        let strips = groups.iter().flat_map(|group| &chosen.list(group.list).strips);
        plan.firsts.iter_mut().zip(strips).for_each(|(first, &strip)| *first += starts[strip]);
        plan.products.iter_mut().for_each(|product| product.first += starts[product.strips.start]);
        // The products of a strip one after the other, while it is in the L1 cache.
        plan.products.sort_unstable_by_key(|product| product.first);
        plan.join_neighbours();
        plan
    }

    /// Joins products of the same rows and neighbouring strips: each product has its own costs. There remain
    /// enough of them for all threads.
    fn join_neighbours(&mut self) {
        let most = (self.products.len() / (4 * thread_count())).clamp(1, STRIPS);
        self.products.dedup_by(|next, last| {
            let is_next = next.rows == last.rows
                && next.strips.start == last.strips.end
                && next.first == last.first + last.height();
            let fits = last.strips.len() < most && !next.strips.start.is_multiple_of(STRIPS);
            if is_next && fits {
                last.strips.end = next.strips.end;
            }
            is_next && fits
        });
    }
}
