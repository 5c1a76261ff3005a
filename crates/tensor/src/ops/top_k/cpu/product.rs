//! Scores that are looked through while they are computed. A task is some segments of columns with all rows; the scores of a
//! block of rows with a segment are in the second cache at most.

use std::ops::Range;

use super::super::{NOTHING, Projection, Scored, TopK};
use super::admit;
use super::uniform::{Powers, SEGMENT, Segment, Tops, join, normalizer};
use crate::cpu::gemm::int8::{self, BLOCK, Block, Int8Rows, Product};
use crate::cpu::simd::{LANES, Lanes};
use crate::cpu::threads::{SharedMut, parallel, thread_count};
use crate::params::Orientation;
use crate::{Array, DType, Param, Tensor};

/// Strips of a segment.
const STRIPS: usize = SEGMENT / int8::STRIP;
/// Vectors of a strip.
const HALVES: usize = int8::STRIP / LANES;
/// Rows that are joined together.
const JOINED: usize = 16;

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
    let looked = look_through(&product, bias, rows.len(), count);

    let normalizers = SharedMut::new(&mut found.normalizers);
    let best = SharedMut::new(&mut found.best);
    parallel(rows.len().div_ceil(JOINED), |task| {
        for row in task * JOINED..((task + 1) * JOINED).min(rows.len()) {
            // SAFETY: every row belongs to one task, here and below.
            unsafe { normalizers.set(row, normalizer(looked.segments(row))) };
            // SAFETY: as above.
            let best = unsafe { best.slice(row * count..(row + 1) * count) };
            looked.best(row).for_each(|later| join(best, later));
        }
    });
    for (row, column, score) in &mut found.others {
        let column = *column as usize;
        *score = product.element(*row, column);
        if let Some(bias) = bias {
            *score += bias[column];
        }
    }
}

/// What the tasks have seen.
struct Looked {
    rows: usize,
    count: usize,
    /// `[segment][row]`
    segments: Vec<Segment>,
    /// `[task][row][count]`
    best: Vec<Scored>,
}

impl Looked {
    fn segments(&self, row: usize) -> impl Iterator<Item = Segment> + Clone {
        self.segments.iter().skip(row).step_by(self.rows).copied()
    }

    fn best(&self, row: usize) -> impl Iterator<Item = &[Scored]> {
        let all = self.best.chunks_exact((self.rows * self.count).max(1));
        all.map(move |best| &best[row * self.count..(row + 1) * self.count])
    }
}

fn look_through(product: &Product<'_>, bias: Option<&[f32]>, rows: usize, count: usize) -> Looked {
    let segments = product.strips().div_ceil(STRIPS);
    let tasks = segments.min(4 * thread_count());
    let mut looked = Looked {
        rows,
        count,
        segments: vec![Segment::EMPTY; segments * rows],
        best: vec![NOTHING; tasks * rows * count],
    };
    let (all_segments, all_best) = (SharedMut::new(&mut looked.segments), SharedMut::new(&mut looked.best));
    parallel(tasks, |task| {
        // SAFETY: every task has its own, here and below.
        let best = unsafe { all_best.slice(task * rows * count..(task + 1) * rows * count) };
        let mut scores = Scores::new(bias, rows.min(BLOCK));
        for segment in task * segments / tasks..(task + 1) * segments / tasks {
            // SAFETY: as above.
            let states = unsafe { all_segments.slice(segment * rows..(segment + 1) * rows) };
            for first in (0..rows).step_by(BLOCK) {
                let block = first..(first + BLOCK).min(rows);
                let best = &mut best[block.start * count..block.end * count];
                scores.look_through(product, segment, block.clone(), &mut states[block], best);
            }
        }
    });
    looked
}

/// The scores of a block of rows with a segment.
struct Scores<'a> {
    bias: Option<&'a [f32]>,
    height: usize,
    /// `[strip][row][32]`
    memory: Array,
    tops: [Tops; BLOCK],
}

impl Scores<'_> {
    fn new(bias: Option<&[f32]>, height: usize) -> Scores<'_> {
        Scores {
            bias,
            height,
            memory: Array::scratch(DType::F32, height, SEGMENT),
            tops: [Tops::NONE; BLOCK],
        }
    }

    fn look_through(
        &mut self,
        product: &Product<'_>,
        segment: usize,
        rows: Range<usize>,
        states: &mut [Segment],
        best: &mut [Scored],
    ) {
        let strips = segment * STRIPS..((segment + 1) * STRIPS).min(product.strips());
        let (columns, count) = (product.columns(), strips.len());
        self.tops = [Tops::NONE; BLOCK];
        let memory = self.memory.f32_mut().as_chunks_mut::<LANES>().0;
        let mut parts = memory.chunks_exact_mut(self.height * HALVES);
        product.blocks(rows, strips, |block| {
            let scores = parts.next().expect("a part for each strip");
            write_block(block, self.bias, columns, scores, &mut self.tops);
        });
        let scores = &memory[..count * self.height * HALVES];
        add_up(scores, self.height, segment * SEGMENT, &self.tops, states, best);
    }
}

kernel! {
    /// Writes the scores of a block, −∞ behind the last column, and notes the largest.
    fn write_block(block: &Block<'_>, bias: Option<&[f32]>, columns: usize, scores: &mut [Lanes], tops: &mut [Tops; BLOCK]) {
        let present = columns - block.corner.1;
        let bias = bias.map(|bias| &bias[block.corner.1..]);
        for row in 0..block.len() {
            let mut numbers = block.row(row);
            if let Some(bias) = bias {
                for (number, bias) in numbers.as_flattened_mut().iter_mut().zip(bias) {
                    *number += bias;
                }
            }
            if present < int8::STRIP {
                numbers.as_flattened_mut()[present..].fill(f32::NEG_INFINITY);
            }
            for (half, numbers) in numbers.iter().enumerate() {
                tops[row].add(numbers);
                scores[row * HALVES + half] = *numbers;
            }
        }
    }
}

kernel! {
    /// Sums a segment's powers row by row, and puts those among the best that are.
    fn add_up(scores: &[Lanes], height: usize, first: usize, tops: &[Tops; BLOCK], states: &mut [Segment], best: &mut [Scored]) {
        let count = best.len() / states.len().max(1);
        for (row, state) in states.iter_mut().enumerate() {
            let (top, mut powers) = (tops[row].top(), Powers::NONE);
            let best = &mut best[row * count..(row + 1) * count];
            let has_some = best.last().is_some_and(|last| top > last.score);
            for (strip, scores) in scores.chunks_exact(height * HALVES).enumerate() {
                let scores = &scores[row * HALVES..(row + 1) * HALVES];
                for (half, scores) in scores.iter().enumerate() {
                    if has_some {
                        admit(scores, first + strip * int8::STRIP + half * LANES, best);
                    }
                    powers.add(scores, top);
                }
            }
            *state = powers.segment(top);
        }
    }
}
