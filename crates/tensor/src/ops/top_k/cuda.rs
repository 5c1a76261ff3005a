//! Top-k on the GPU. What is found is written into memory of the host, where it can be read once the step is done.

use bytemuck::NoUninit;

use super::{TopK, marks};
use crate::Array;
use crate::cuda::{Blocks, Module, Pinned, Pointer, roomy, upload, upload_list};

pub(crate) static MODULE: Module =
    Module::early("top_k", concat!(include_str!("../../cuda/marks.cu"), include_str!("cuda.cu")));

/// More best columns than this are found on the host.
pub(super) const MOST: usize = 64;

/// Results of the GPU, and which search they will be of.
#[derive(Default)]
pub(super) struct FromGpu {
    memory: Option<Pinned>,
    /// Where each kind of result begins, while results are on their way.
    pending: Option<Layout>,
}

/// Where results lie: normalizers, then the best columns, then the scores of others.
#[derive(Clone, Copy)]
struct Layout {
    best: usize,
    others: usize,
}

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Job {
    scores: Pointer,
    marks: Pointer,
    normalizers: Pointer,
    best: Pointer,
    other_count: Pointer,
    others: Pointer,
    other_scores: Pointer,
    rows: u32,
    width: u32,
    count: u32,
    blocks_of_rows: u32,
}

/// Rows of a block, as in the kernels' source.
const ROWS: usize = 8;
/// Marks that a block makes.
const MARKS: usize = 16;

impl FromGpu {
    /// Memory for so many bytes; it stays where it is while it suffices, so that steps can be replayed.
    fn memory(&mut self, bytes: usize) -> Pointer {
        if self.memory.as_ref().is_none_or(|memory| memory.bytes() < bytes) {
            self.memory = Some(Pinned::pooled(bytes));
        }
        self.memory.as_ref().expect("just made").pointer()
    }
}

/// Begins to find as many best columns and other scores as `found` has room for. They are there after [`collect`]. Scores may have
/// [marks] already.
pub(super) fn find(scores: &Array, marks: Option<Array>, found: &mut TopK) {
    let (rows, count) = (found.normalizers.len(), found.count);
    assert!(count <= MOST, "top_k: the {count} best are found on the host");
    let others: Vec<[u32; 2]> = found.others.iter().map(|&(row, column, _)| [row as u32, column]).collect();
    let layout = Layout { best: 8 * rows, others: 8 * rows * (1 + count) };
    let start = found.from_gpu.memory(layout.others + 4 * roomy(others.len()));
    let (list, other_count) = (upload_list(&others), upload(&[others.len() as u32]));
    let is_marked = marks.is_some();
    let marks = marks.unwrap_or_else(|| marks::room(rows, scores.width()));
    let blocks_of_rows = rows.div_ceil(ROWS);
    let job = Job {
        scores: scores.pointer(),
        marks: marks.pointer(),
        normalizers: start,
        best: start.offset(layout.best),
        other_count: other_count.pointer(),
        others: list.pointer(),
        other_scores: start.offset(layout.others),
        rows: rows as u32,
        width: scores.width() as u32,
        count: count as u32,
        blocks_of_rows: blocks_of_rows as u32,
    };
    if !is_marked {
        let blocks = (rows * marks::of_row(scores.width())).div_ceil(MARKS);
        launch!(MODULE.function("top_k_marks"), Blocks::of(blocks, 16 * MARKS), job);
    }
    let blocks_of_others = roomy(others.len()).div_ceil(32 * ROWS);
    launch!(MODULE.function("top_k"), Blocks::of(blocks_of_rows + blocks_of_others, 32 * ROWS), job);
    found.from_gpu.pending = Some(layout);
}

/// Takes what the GPU has found; it is through with it.
pub(super) fn collect(found: &mut TopK) {
    let TopK { normalizers, best, others, from_gpu, .. } = found;
    let Some(layout) = from_gpu.pending.take() else { return };
    let memory = from_gpu.memory.as_ref().expect("it was given to the GPU");
    memory.read(0, bytemuck::cast_slice_mut(normalizers));
    memory.read(layout.best, bytemuck::cast_slice_mut(best));
    let mut scores = vec![0.0_f32; others.len()];
    memory.read(layout.others, bytemuck::cast_slice_mut(&mut scores));
    for ((_, _, score), taken) in others.iter_mut().zip(scores) {
        *score = taken;
    }
}
