//! Top-k fused with the int8 output projection: scores are searched as they are computed. A task has some
//! segments of columns and all rows; the scores of a block of rows and one segment fit in the L2 cache.

use std::ops::Range;

use super::super::{NONE, Projection, Scored, TopK};
use super::insert_better;
use super::uniform::{LaneExpSums, LaneMaxima, SEGMENT, SegmentStats, merge, normalizer};
use crate::cpu::gemm::int8::{self, BLOCK, Block, Int8Rows, Product};
use crate::cpu::simd::{LANES, Lanes};
use crate::cpu::threads::{SharedMut, parallel, thread_count};
use crate::params::Orientation;
use crate::{Array, DType, Param, Tensor};

/// Strips of a segment.
const STRIPS: usize = SEGMENT / int8::STRIP;
/// Vectors of a strip.
const HALVES: usize = int8::STRIP / LANES;
/// Rows of one task that merges results.
const MERGED_ROWS: usize = 16;

pub(in crate::ops::top_k) fn find_in_product(
    x: &Tensor,
    Projection { weight, bias }: Projection<'_>,
    found: &mut TopK,
) {
    let bias = bias.map(Param::values);
    let bias = bias.as_deref();
    let rows = Int8Rows::new(x.array_as(DType::F32).f32(), x.width());
    let matrix = weight.quantized(Orientation::Transposed);
    let (product, count) = (Product::new(&rows, &matrix), found.count);
    let partial = search(&product, bias, rows.len(), count);

    let normalizers = SharedMut::new(&mut found.normalizers);
    let best = SharedMut::new(&mut found.best);
    parallel(rows.len().div_ceil(MERGED_ROWS), |task| {
        for row in task * MERGED_ROWS..((task + 1) * MERGED_ROWS).min(rows.len()) {
            // SAFETY: every row belongs to one task, here and below.
            unsafe { normalizers.set(row, normalizer(partial.segments(row))) };
            // SAFETY: as above.
            let best = unsafe { best.slice(row * count..(row + 1) * count) };
            partial.best(row).for_each(|later| merge(best, later));
        }
    });
    for (row, column, score) in &mut found.extra {
        let column = *column as usize;
        *score = product.element(*row, column);
        if let Some(bias) = bias {
            *score += bias[column];
        }
    }
}

/// The results of the tasks.
struct PartialResults {
    rows: usize,
    count: usize,
    /// `[segment][row]`
    segments: Vec<SegmentStats>,
    /// `[task][row][count]`
    best: Vec<Scored>,
}

impl PartialResults {
    fn segments(&self, row: usize) -> impl Iterator<Item = SegmentStats> + Clone {
        self.segments.iter().skip(row).step_by(self.rows).copied()
    }

    fn best(&self, row: usize) -> impl Iterator<Item = &[Scored]> {
        let all = self.best.chunks_exact((self.rows * self.count).max(1));
        all.map(move |best| &best[row * self.count..(row + 1) * self.count])
    }
}

fn search(product: &Product<'_>, bias: Option<&[f32]>, rows: usize, count: usize) -> PartialResults {
    let segments = product.strips().div_ceil(STRIPS);
    let tasks = segments.min(4 * thread_count());
    let mut partial = PartialResults {
        rows,
        count,
        segments: vec![SegmentStats::EMPTY; segments * rows],
        best: vec![NONE; tasks * rows * count],
    };
    let (all_segments, all_best) = (SharedMut::new(&mut partial.segments), SharedMut::new(&mut partial.best));
    parallel(tasks, |task| {
        // SAFETY: every task has its own range, here and below.
        let best = unsafe { all_best.slice(task * rows * count..(task + 1) * rows * count) };
        let mut scores = Scores::new(bias, rows.min(BLOCK));
        for segment in task * segments / tasks..(task + 1) * segments / tasks {
            // SAFETY: as above.
            let states = unsafe { all_segments.slice(segment * rows..(segment + 1) * rows) };
            for first in (0..rows).step_by(BLOCK) {
                let block = first..(first + BLOCK).min(rows);
                let best = &mut best[block.start * count..block.end * count];
                scores.search(product, segment, block.clone(), &mut states[block], best);
            }
        }
    });
    partial
}

/// The scores of a block of rows and one segment.
struct Scores<'a> {
    bias: Option<&'a [f32]>,
    height: usize,
    /// `[strip][row][32]`
    memory: Array,
    maxima: [LaneMaxima; BLOCK],
}

impl Scores<'_> {
    fn new(bias: Option<&[f32]>, height: usize) -> Scores<'_> {
        Scores {
            bias,
            height,
            memory: Array::scratch(DType::F32, height, SEGMENT),
            maxima: [LaneMaxima::EMPTY; BLOCK],
        }
    }

    fn search(
        &mut self,
        product: &Product<'_>,
        segment: usize,
        rows: Range<usize>,
        states: &mut [SegmentStats],
        best: &mut [Scored],
    ) {
        let strips = segment * STRIPS..((segment + 1) * STRIPS).min(product.strips());
        let (columns, count) = (product.columns(), strips.len());
        self.maxima = [LaneMaxima::EMPTY; BLOCK];
        let memory = self.memory.f32_mut().as_chunks_mut::<LANES>().0;
        let mut strips_of_scores = memory.chunks_exact_mut(self.height * HALVES);
        product.blocks(rows, strips, |block| {
            let scores = strips_of_scores.next().expect("scores for each strip");
            write_block(block, self.bias, columns, scores, &mut self.maxima);
        });
        let scores = &memory[..count * self.height * HALVES];
        reduce(scores, self.height, segment * SEGMENT, &self.maxima, states, best);
    }
}

kernel! {
    /// Writes the scores of a block, −∞ after the last column, and updates the maxima.
    fn write_block(block: &Block<'_>, bias: Option<&[f32]>, columns: usize, scores: &mut [Lanes], maxima: &mut [LaneMaxima; BLOCK]) {
        let present = columns - block.corner.1;
        let bias = bias.map(|bias| &bias[block.corner.1..]);
        for row in 0..block.len() {
            let mut values = block.row(row);
            if let Some(bias) = bias {
                for (value, bias) in values.as_flattened_mut().iter_mut().zip(bias) {
                    *value += bias;
                }
            }
            if present < int8::STRIP {
                values.as_flattened_mut()[present..].fill(f32::NEG_INFINITY);
            }
            for (half, values) in values.iter().enumerate() {
                maxima[row].add(values);
                scores[row * HALVES + half] = *values;
            }
        }
    }
}

kernel! {
    /// Sums a segment's exponentials row by row, and updates the best columns.
    fn reduce(scores: &[Lanes], height: usize, first: usize, maxima: &[LaneMaxima; BLOCK], states: &mut [SegmentStats], best: &mut [Scored]) {
        let count = best.len() / states.len().max(1);
        for (row, state) in states.iter_mut().enumerate() {
            let (max, mut exp_sums) = (maxima[row].max(), LaneExpSums::EMPTY);
            let best = &mut best[row * count..(row + 1) * count];
            let has_better = best.last().is_some_and(|last| max > last.score);
            for (strip, scores) in scores.chunks_exact(height * HALVES).enumerate() {
                let scores = &scores[row * HALVES..(row + 1) * HALVES];
                for (half, scores) in scores.iter().enumerate() {
                    if has_better {
                        insert_better(scores, first + strip * int8::STRIP + half * LANES, best);
                    }
                    exp_sums.add(scores, max);
                }
            }
            *state = exp_sums.segment(max);
        }
    }
}
