//! Attention to cached rows on the GPU. The index lists are uploaded once a step, for all layers.

use std::ops::Range;

use bytemuck::NoUninit;

use super::CachedAttentionOptions;
use crate::cuda::{Blocks, Buffer, Module, Pointer, copy, upload_bucketed, upload_pow2};
use crate::ops::ColumnView;
use crate::{Array, DType, Device, Tensor};

pub(crate) static MODULE: Module = Module::with_pdl(
    "cached_attention",
    concat!(include_str!("../../cuda/mma.cu"), include_str!("cuda.cu"), include_str!("fast.cu")),
);

/// As in the kernels' source: warps of a block, queries that share a product, the largest width of a head's
/// key or value, and the same for the wide kernel.
const WARPS: usize = 4;
const QUERIES_PER_WARP: usize = 8;
const MAX_WIDTH: usize = 256;
const MAX_WIDTH_WIDE: usize = 1024;

/// For each query of a step the cached rows that it sees, in GPU memory until the step ends.
pub struct KvIndices {
    queries: usize,
    spans: Buffer,
    slots: Option<Buffer>,
    /// One past the largest row.
    end: usize,
    is_empty: bool,
    /// The largest number of neighbouring queries that see the same rows.
    max_sharing: usize,
}

impl KvIndices {
    /// Any rows, in the order of their positions: the prefixes of hypotheses, each a range of `slots`. The
    /// query's own row is the last of its range.
    pub fn from_slots(slots: &[u32], ranges: impl IntoIterator<Item = Range<usize>>) -> KvIndices {
        let indices = KvIndices::from_ranges(ranges);
        assert!(indices.end <= slots.len(), "cached attention: slot {} of {}", indices.end, slots.len());
        // There are hundreds of thousands: over plain integers this loop is vectorized.
        let end = slots.iter().copied().fold(0, u32::max) as usize + usize::from(!slots.is_empty());
        // The list grows with every step: it is uploaded to a buffer of twice the size, so that most steps
        // find everything else at the same address.
        KvIndices { slots: Some(upload_pow2(slots)), end, ..indices }
    }

    /// Consecutive rows: the encoder outputs of sentences.
    pub fn from_ranges(ranges: impl IntoIterator<Item = Range<usize>>) -> KvIndices {
        let (mut spans, mut end) = (Vec::new(), 0);
        for rows in ranges {
            spans.push([rows.start as u32, rows.len() as u32]);
            end = end.max(rows.end);
        }
        KvIndices { end, ..KvIndices::new(&spans) }
    }

    fn new(spans: &[[u32; 2]]) -> KvIndices {
        let runs = spans.chunk_by(|a, b| a == b).filter(|run| run[0][1] > 0);
        let max_sharing = runs.map(<[_]>::len).max();
        KvIndices {
            queries: spans.len(),
            spans: upload_bucketed(spans),
            slots: None,
            end: 0,
            is_empty: max_sharing.is_none(),
            max_sharing: max_sharing.unwrap_or(1),
        }
    }
}

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Job {
    queries: Pointer,
    stored: Pointer,
    out: Pointer,
    spans: Pointer,
    slots: Pointer,
    newest: Pointer,
    rows: u32,
    heads: u32,
    query_stride: u32,
    stored_width: u32,
    d_k: u32,
    d_v: u32,
    scale: f32,
    newest_stride: u32,
    tile: u32,
    unused: u32,
}

/// Panics if queries and indices do not match.
pub(super) fn check(queries: &ColumnView, stored: &Array, indices: &KvIndices) {
    let (rows, tensor) = (queries.tensor.rows(), &queries.tensor);
    assert_eq!(rows, indices.queries, "cached attention: {tensor:?} and {} lists of keys", indices.queries);
    assert!(!indices.is_empty, "cached attention: no query of {tensor:?} sees a key");
    let (end, dtype) = (indices.end, tensor.dtype());
    assert!(
        end <= stored.rows(),
        "cached attention: a query of {tensor:?} sees row {} of {stored:?}",
        end - 1
    );
    assert!(stored.dtype() == dtype, "cached attention: queries of {dtype} and {stored:?} on a GPU");
}

fn start_of(part: &ColumnView) -> Pointer {
    part.tensor.array().pointer().offset(part.columns.start * part.tensor.dtype().bytes())
}

/// Whether all groups of eight elements of a row begin at a multiple of 16 bytes.
fn is_aligned(part: &ColumnView) -> bool {
    part.tensor.width().is_multiple_of(8) && part.columns.start.is_multiple_of(8)
}

/// With `newest`, also stores the last row that each query sees.
pub(super) fn attend(
    queries: &ColumnView,
    stored: &Array,
    indices: &KvIndices,
    newest: Option<&ColumnView>,
    options: CachedAttentionOptions,
    value_width: usize,
) -> Array {
    let tensor = &queries.tensor;
    let (rows, heads) = (tensor.rows(), options.heads);
    let (d_k, d_v) = (options.key_width / heads, value_width / heads);
    let widest = d_k.max(d_v);
    assert!(
        widest <= MAX_WIDTH_WIDE,
        "cached attention: heads of width {widest} on a GPU, at most {MAX_WIDTH_WIDE}"
    );
    let fits = d_k == d_v && matches!(d_k, 32 | 64 | 128) && is_aligned(queries);
    let is_fast = fits && tensor.dtype() == DType::Bf16;
    // The fast kernels store the newest rows themselves, if the indices have slots.
    let is_fusible = |part: &&ColumnView| {
        is_fast && part.tensor.dtype() == DType::Bf16 && is_aligned(part) && indices.slots.is_some()
    };
    let fused = newest.filter(is_fusible);
    if let (Some(part), None) = (newest, fused) {
        store_newest(&part.tensor, &part.columns, stored, indices);
    }
    let out = Array::scratch_on(Device::Cuda, tensor.dtype(), rows, value_width);
    // As many queries as the warps of a block process at once.
    let tile = WARPS * indices.max_sharing.min(QUERIES_PER_WARP);
    let job = Job {
        queries: start_of(queries),
        stored: stored.pointer(),
        out: out.pointer(),
        spans: indices.spans.pointer(),
        slots: indices.slots.as_ref().map_or(Pointer::NULL, Buffer::pointer),
        newest: fused.map_or(Pointer::NULL, start_of),
        rows: rows as u32,
        heads: heads as u32,
        query_stride: tensor.width() as u32,
        stored_width: stored.width() as u32,
        d_k: d_k as u32,
        d_v: d_v as u32,
        scale: options.scale,
        newest_stride: fused.map_or(0, |part| part.tensor.width() as u32),
        tile: tile as u32,
        unused: 0,
    };
    if is_fast {
        // The hypotheses of a sentence see the same source rows, but each has its own prefix.
        let (kind, blocks) = match indices.slots {
            Some(_) => ("bf16", (rows * heads).div_ceil(WARPS)),
            None => ("tiled", rows.div_ceil(tile) * heads),
        };
        launch!(MODULE.function(format!("attend_{d_k}_{kind}")), Blocks::of(blocks, 32 * WARPS), job);
        return out;
    }
    let is_even = [d_k, d_v, stored.width()].iter().all(|width| width.is_multiple_of(8));
    let kind = match is_even {
        _ if widest > MAX_WIDTH => "wide_",
        true => "",
        false => "uneven_",
    };
    let name = format!("attend_{kind}{}", tensor.dtype());
    launch!(MODULE.function(name), Blocks::of((rows * heads).div_ceil(WARPS), 32 * WARPS), job);
    out
}

/// A copy of a store with more rows.
pub(super) fn grown(array: &Array, rows: usize) -> Array {
    let more = Array::scratch_on(Device::Cuda, array.dtype(), rows, array.width());
    copy(array.pointer(), more.pointer(), array.len() * array.dtype().bytes());
    more
}

/// Writes columns of each row to the last of the rows that its query sees; rows of queries that see none are
/// skipped.
pub(super) fn store_newest(from: &Tensor, columns: &Range<usize>, stored: &Array, indices: &KvIndices) {
    let slots = indices.slots.as_ref().expect("indices with slots");
    assert!(indices.end <= stored.rows(), "key value store: row {} of {stored:?}", indices.end - 1);
    let name = format!("store_newest_{}", stored.dtype());
    let [stride, column, width] = [from.width(), columns.start, columns.len()].map(|size| size as u32);
    let (from, to) = (from.array_as(stored.dtype()).pointer(), stored.pointer());
    let blocks = Blocks::of(indices.queries, 128);
    launch!(
        MODULE.function(name),
        blocks,
        from,
        to,
        indices.spans.pointer(),
        slots.pointer(),
        stride,
        column,
        width
    );
}

/// Writes rows to the consecutive rows from `first` on.
pub(super) fn write_rows(from: &Tensor, stored: &Array, first: usize) {
    let from = from.array_as(stored.dtype());
    let bytes = stored.width() * stored.dtype().bytes();
    copy(from.pointer(), stored.pointer().offset(first * bytes), from.rows() * bytes);
}
