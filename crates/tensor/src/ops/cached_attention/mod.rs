//! Attention of single queries to a KV cache: one step of decoding.
//!
//! For every query row and head, with the cached keys `K (n × d_k)` and values `V (n × d_v)` that this row
//! sees:
//!
//! ```text
//! o = softmax(scale · q Kᵀ) V
//! ```
//!
//! | | shape |
//! |---|---|
//! | queries | rows × h·d_k |
//! | a cached row | h·d_k elements of the key, then h·d_v of the value |
//! | result | rows × h·d_v, in the queries' type |
//!
//! Each query row lists the cached rows that it sees, so nothing moves when hypotheses are reordered: those
//! with a common prefix list the same rows, and all hypotheses of a sentence list the same encoder output.
//! There is no gradient.
//!
//! Arithmetic is f32 whatever the cache's type, which may be narrower than the queries'. The sums of a row
//! run over its own elements in one order, so its bits depend on nothing else in the batch. They differ in
//! the last digits from [`super::attention()`], which multiplies in blocks and, on AMX, rounds weights to
//! bf16.

mod cpu;
pub(crate) mod cuda;
mod store;

use std::ops::Range;

pub use cuda::KvIndices;
pub use store::KeyValueStore;

use super::ColumnView;
use crate::{Array, Device, Rounding, Tensor};

/// The options of [`cached_attention`].
#[derive(Clone, Copy, Debug)]
pub struct CachedAttentionOptions {
    /// Number of heads; divides the widths of keys and values.
    pub heads: usize,
    /// Columns of a cached row that are its key; the rest is its value.
    pub key_width: usize,
    /// Scores are multiplied by this.
    pub scale: f32,
    /// How sums are rounded.
    pub rounding: Rounding,
}

/// The cached rows that one query sees.
#[derive(Clone)]
pub enum KeyValueRows<'a> {
    /// Consecutive rows of an array: the encoder output of a sentence.
    Range(&'a Array, Range<usize>),
    /// Any rows of an array, in the order of their positions: the prefix of a hypothesis.
    Listed(&'a Array, &'a [u32]),
}

impl<'a> KeyValueRows<'a> {
    fn array(&self) -> &'a Array {
        match self {
            KeyValueRows::Range(array, _) | KeyValueRows::Listed(array, _) => array,
        }
    }

    /// The number of rows.
    fn len(&self) -> usize {
        match self {
            KeyValueRows::Range(_, rows) => rows.len(),
            KeyValueRows::Listed(_, rows) => rows.len(),
        }
    }

    #[inline(always)]
    fn row(&self, position: usize) -> usize {
        match self {
            KeyValueRows::Range(_, rows) => rows.start + position,
            KeyValueRows::Listed(_, rows) => rows[position] as usize,
        }
    }

    /// One past the largest row.
    fn end(&self) -> usize {
        match self {
            KeyValueRows::Range(_, rows) => rows.end,
            KeyValueRows::Listed(_, rows) => rows.iter().max().map_or(0, |&last| last as usize + 1),
        }
    }
}

/// The cached keys and values that the queries of a step see.
pub enum KvView<'a> {
    /// The rows of each query, in host memory.
    PerQuery(Vec<KeyValueRows<'a>>),
    /// Rows of one array on the GPU, selected by index lists.
    Indexed(&'a Array, &'a KvIndices),
    /// The same, but each query's last row is not in the store yet: it is a row of the view, and the kernel
    /// stores it.
    IndexedWithNewest(&'a KeyValueStore, &'a KvIndices, &'a ColumnView),
}

/// `o = softmax(scale · q Kᵀ) V` for each query over the rows it sees.
///
/// # Panics
/// If shapes or types do not match, a query sees no row, or the cache is on another device.
pub fn cached_attention(queries: &ColumnView, seen: &KvView<'_>, options: CachedAttentionOptions) -> Tensor {
    Tensor::new(match (queries.tensor.device(), seen) {
        (Device::Cpu, KvView::PerQuery(seen)) => {
            let value_width = check(queries, seen, options);
            cpu::attend(queries, seen, options, value_width)
        }
        (Device::Cuda, KvView::Indexed(stored, indices)) => {
            let value_width = check_widths(queries, stored.width(), options);
            cuda::check(queries, stored, indices);
            cuda::attend(queries, stored, indices, None, options, value_width)
        }
        (Device::Cuda, KvView::IndexedWithNewest(store, indices, newest)) => {
            let stored = store.array();
            let value_width = check_widths(queries, stored.width(), options);
            cuda::check(queries, stored, indices);
            store.check(&newest.tensor, &newest.columns, queries.tensor.rows());
            cuda::attend(queries, stored, indices, Some(newest), options, value_width)
        }
        (device @ Device::Cpu, KvView::Indexed(..) | KvView::IndexedWithNewest(..))
        | (device @ Device::Cuda, KvView::PerQuery(_)) => {
            panic!("cached attention: queries on {device}, keys on another device")
        }
    })
}

/// Checks the shapes and returns the width of the values.
fn check(queries: &ColumnView, seen: &[KeyValueRows<'_>], options: CachedAttentionOptions) -> usize {
    let tensor = &queries.tensor;
    assert_eq!(tensor.rows(), seen.len(), "cached attention: {tensor:?} and {} lists of keys", seen.len());
    assert!(!seen.is_empty(), "cached attention: no query");
    let stored = seen[0].array().width();
    for (row, seen) in seen.iter().enumerate() {
        let array = seen.array();
        assert!(seen.len() > 0, "cached attention: query {row} sees no key");
        assert!(
            seen.end() <= array.rows() && array.width() == stored,
            "cached attention: query {row} of {tensor:?} sees row {} of {array:?}",
            seen.end() - 1
        );
    }
    check_widths(queries, stored, options)
}

/// Checks the widths and returns the width of the values in cached rows of width `stored`.
fn check_widths(queries: &ColumnView, stored: usize, options: CachedAttentionOptions) -> usize {
    let CachedAttentionOptions { heads, key_width, .. } = options;
    let (tensor, columns) = (&queries.tensor, &queries.columns);
    assert!(columns.end <= tensor.width(), "cached attention: queries are columns {columns:?} of {tensor:?}");
    let width = columns.len();
    assert_eq!(width, key_width, "cached attention: queries of width {width} and keys of width {key_width}");
    let value_width = stored.saturating_sub(key_width);
    assert!(
        heads > 0 && value_width > 0 && key_width.is_multiple_of(heads) && value_width.is_multiple_of(heads),
        "cached attention: keys of width {key_width} and values of width {value_width} among {heads} heads"
    );
    value_width
}
