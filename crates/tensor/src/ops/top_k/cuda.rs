//! Top-k on the GPU. The results are written to pinned host memory, where they can be read once the step is
//! done.

use bytemuck::NoUninit;

use super::{TopK, block_stats};
use crate::Array;
use crate::cuda::{Blocks, Module, Pinned, Pointer, round_up_to_bucket, upload, upload_bucketed};

pub(crate) static MODULE: Module =
    Module::with_pdl("top_k", concat!(include_str!("../../cuda/block_stats.cu"), include_str!("cuda.cu")));

/// The largest `count` of the kernels; more columns are searched on the CPU.
pub(super) const MAX_COUNT: usize = 64;

/// The results of the GPU in host memory.
#[derive(Default)]
pub(super) struct FromGpu {
    memory: Option<Pinned>,
    /// Their layout, while a search is pending.
    pending: Option<Layout>,
}

/// Byte offsets of the results: the normalizers come first, then the best columns, then the extra scores.
#[derive(Clone, Copy)]
struct Layout {
    best: usize,
    extra: usize,
}

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct TopKArgs {
    scores: Pointer,
    block_stats: Pointer,
    normalizers: Pointer,
    best: Pointer,
    extra_count: Pointer,
    extra: Pointer,
    extra_scores: Pointer,
    rows: u32,
    width: u32,
    count: u32,
    row_blocks: u32,
}

/// Rows of a block, as in the kernels' source.
const ROWS: usize = 8;
/// Statistics that a thread block computes.
const STATS: usize = 16;

impl FromGpu {
    /// Memory for `bytes` bytes. Its address stays the same while it is large enough, so that CUDA graphs can
    /// be replayed.
    fn memory(&mut self, bytes: usize) -> Pointer {
        if self.memory.as_ref().is_none_or(|memory| memory.bytes() < bytes) {
            self.memory = Some(Pinned::pooled(bytes));
        }
        self.memory.as_ref().expect("just made").pointer()
    }
}

/// Submits the search for as many best columns and extra scores as `found` has space for. They are available
/// after [`collect`]. `stats` are the [`block_stats`] of the scores, if they are known already.
pub(super) fn find(scores: &Array, stats: Option<Array>, found: &mut TopK) {
    let (rows, count) = (found.normalizers.len(), found.count);
    assert!(count <= MAX_COUNT, "top_k: the kernels find at most {MAX_COUNT} columns, not {count}");
    let extra: Vec<[u32; 2]> = found.extra.iter().map(|&(row, column, _)| [row as u32, column]).collect();
    let layout = Layout { best: 8 * rows, extra: 8 * rows * (1 + count) };
    let start = found.from_gpu.memory(layout.extra + 4 * round_up_to_bucket(extra.len()));
    let (list, extra_count) = (upload_bucketed(&extra), upload(&[extra.len() as u32]));
    let has_stats = stats.is_some();
    let stats = stats.unwrap_or_else(|| block_stats::scratch(rows, scores.width()));
    let row_blocks = rows.div_ceil(ROWS);
    let args = TopKArgs {
        scores: scores.pointer(),
        block_stats: stats.pointer(),
        normalizers: start,
        best: start.offset(layout.best),
        extra_count: extra_count.pointer(),
        extra: list.pointer(),
        extra_scores: start.offset(layout.extra),
        rows: rows as u32,
        width: scores.width() as u32,
        count: count as u32,
        row_blocks: row_blocks as u32,
    };
    if !has_stats {
        let blocks = (rows * block_stats::blocks_of_row(scores.width())).div_ceil(STATS);
        launch!(MODULE.function("top_k_block_stats"), Blocks::of(blocks, 16 * STATS), args);
    }
    let extra_blocks = round_up_to_bucket(extra.len()).div_ceil(32 * ROWS);
    launch!(MODULE.function("top_k"), Blocks::of(row_blocks + extra_blocks, 32 * ROWS), args);
    found.from_gpu.pending = Some(layout);
}

/// Copies the results of a finished search.
pub(super) fn collect(found: &mut TopK) {
    let TopK { normalizers, best, extra, from_gpu, .. } = found;
    let Some(layout) = from_gpu.pending.take() else { return };
    let memory = from_gpu.memory.as_ref().expect("it was given to the GPU");
    memory.read(0, bytemuck::cast_slice_mut(normalizers));
    memory.read(layout.best, bytemuck::cast_slice_mut(best));
    let mut scores = vec![0.0_f32; extra.len()];
    memory.read(layout.extra, bytemuck::cast_slice_mut(&mut scores));
    for ((_, _, score), found) in extra.iter_mut().zip(scores) {
        *score = found;
    }
}
