//! Top-k fused with the int8 output projection: scores are searched as they are computed, a block of rows and a
//! strip of columns at a time, and never written. A task has some segments of columns and all rows.

use std::ops::Range;

use super::super::{NONE, Normalizers, Projection, Scored, TopK};
use super::uniform::{SEGMENT, STRIP, Segment, SegmentStats, merge, normalizer};
use crate::cpu::gemm::int8::{self, BLOCK, Block, Int8Rows, Product};
use crate::cpu::simd::LANES;
use crate::cpu::threads::{SharedMut, parallel, thread_count};
use crate::params::Orientation;
use crate::{DType, Param, Tensor};

/// Strips of a segment.
const STRIPS: usize = SEGMENT / STRIP;
const _: () = assert!(STRIP == int8::STRIP);
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
    let normalizers = found.requested;
    let partial = match normalizers {
        Normalizers::Skipped if count > 0 => search::<false>(&product, bias, rows.len(), count),
        Normalizers::Computed | Normalizers::Skipped => search::<true>(&product, bias, rows.len(), count),
    };

    let results = SharedMut::new(&mut found.normalizers);
    let best = SharedMut::new(&mut found.best);
    parallel(rows.len().div_ceil(MERGED_ROWS), |task| {
        for row in task * MERGED_ROWS..((task + 1) * MERGED_ROWS).min(rows.len()) {
            // SAFETY: every row belongs to one task, here and below.
            let best = unsafe { best.slice(row * count..(row + 1) * count) };
            partial.best(row).for_each(|later| merge(best, later));
            // SAFETY: as above.
            unsafe { results.set(row, normalizer(partial.segments(row), best, normalizers)) };
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

fn search<const SUM: bool>(
    product: &Product<'_>,
    bias: Option<&[f32]>,
    rows: usize,
    count: usize,
) -> PartialResults {
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
        for segment in task * segments / tasks..(task + 1) * segments / tasks {
            // SAFETY: as above.
            let stats = unsafe { all_segments.slice(segment * rows..(segment + 1) * rows) };
            for first in (0..rows).step_by(BLOCK) {
                let block = first..(first + BLOCK).min(rows);
                let best = &mut best[block.start * count..block.end * count];
                search_segment::<SUM>(product, bias, segment, block.clone(), &mut stats[block], best);
            }
        }
    });
    partial
}

/// Searches a block of rows and one segment.
fn search_segment<const SUM: bool>(
    product: &Product<'_>,
    bias: Option<&[f32]>,
    segment: usize,
    rows: Range<usize>,
    stats: &mut [SegmentStats],
    best: &mut [Scored],
) {
    let strips = segment * STRIPS..((segment + 1) * STRIPS).min(product.strips());
    let mut segments = [Segment::EMPTY; BLOCK];
    let segments = &mut segments[..rows.len()];
    product.blocks(rows, strips, |block| {
        search_block::<SUM>(block, &strip_bias(bias, block.corner.1, product.columns()), segments, best);
    });
    for (stats, segment) in stats.iter_mut().zip(segments) {
        *stats = segment.stats();
    }
}

/// The biases of a strip's columns: −0, which changes no score, if there are none, and −∞ after the last column.
fn strip_bias(bias: Option<&[f32]>, first: usize, columns: usize) -> [f32; STRIP] {
    let mut own = [-0.0; STRIP];
    let present = (columns - first).min(STRIP);
    if let Some(bias) = bias {
        own[..present].copy_from_slice(&bias[first..first + present]);
    }
    own[present..].fill(f32::NEG_INFINITY);
    own
}

kernel! {
    /// Searches the scores of a block.
    fn search_block<const SUM: bool>(block: &Block<'_>, bias: &[f32; STRIP], segments: &mut [Segment], best: &mut [Scored]) {
        let count = best.len() / segments.len().max(1);
        let bias = bias.as_chunks::<LANES>().0;
        for (row, segment) in segments.iter_mut().enumerate() {
            let mut scores = block.row(row);
            for (scores, bias) in scores.iter_mut().zip(bias) {
                for lane in 0..LANES {
                    scores[lane] += bias[lane];
                }
            }
            segment.add::<SUM>(&scores, block.corner.1, &mut best[row * count..(row + 1) * count]);
        }
    }
}
