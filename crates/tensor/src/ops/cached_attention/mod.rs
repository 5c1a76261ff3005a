//! Attention of single queries to keys and values that are already there: one step of decoding.
//!
//! For every query row and head, with the stored keys `K (n × d_k)` and values `V (n × d_v)` that this row sees:
//!
//! ```text
//! o = softmax(scale · q Kᵀ) V
//! ```
//!
//! | | shape |
//! |---|---|
//! | queries | rows × h·d_k |
//! | a stored row | h·d_k numbers of the key, then h·d_v of the value |
//! | result | rows × h·d_v, in the queries' type |
//!
//! A row names the stored rows that it sees, so nothing moves when hypotheses change places: those with a common past
//! name the same rows, and all hypotheses of a sentence name one and the same memory. There is no gradient.
//!
//! Arithmetic is f32 whatever is stored. A row's sums run over its own numbers in one order, so its bits depend on
//! nothing else in the batch. They differ in the last digits from [`super::attention()`], which multiplies in blocks
//! and, on AMX, rounds weights to bf16.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod cpu;
mod store;

use std::ops::Range;

pub use store::KeyValueStore;

use super::Part;
use crate::cpu::number::{Numbers, SharedNumbers};
use crate::cpu::threads::parallel;
use crate::{Array, Tensor};

/// The choices of [`cached_attention`].
#[derive(Clone, Copy, Debug)]
pub struct CachedAttentionOptions {
    /// Number of heads; divides the widths of keys and values.
    pub heads: usize,
    /// Columns of a stored row that are its key; the rest is its value.
    pub key_width: usize,
    /// Scores are multiplied by this.
    pub scale: f32,
}

/// What one query sees.
#[derive(Clone)]
pub enum KeyValueRows<'a> {
    /// Consecutive rows of an array: the memory of a sentence.
    Range(&'a Array, Range<usize>),
    /// Rows anywhere in an array, in the order of their positions: the past of a hypothesis.
    Listed(&'a Array, &'a [u32]),
}

impl<'a> KeyValueRows<'a> {
    fn array(&self) -> &'a Array {
        match self {
            KeyValueRows::Range(array, _) | KeyValueRows::Listed(array, _) => array,
        }
    }

    /// How many rows there are.
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

/// Multiplications that are worth a task.
const TASK: usize = 200_000;

/// `o = softmax(scale · q Kᵀ) V` for each query with what it sees.
///
/// # Panics
/// If shapes or types do not fit together, or a query sees nothing.
pub fn cached_attention(
    queries: &Part,
    seen: &[KeyValueRows<'_>],
    options: CachedAttentionOptions,
) -> Tensor {
    let rows = queries.tensor.rows();
    let value_width = check(queries, seen, options);
    let mut context = Array::scratch(queries.tensor.dtype(), rows, value_width);
    let sizes = cpu::Sizes {
        heads: options.heads,
        d_k: options.key_width / options.heads,
        d_v: value_width / options.heads,
        scale: options.scale,
    };
    let work: usize = seen.iter().map(|seen| seen.len() * (options.key_width + value_width)).sum();
    let group = (rows * TASK / work.max(1)).clamp(1, rows.max(1));
    let longest = seen.iter().map(KeyValueRows::len).max().unwrap_or(0);
    let out = SharedNumbers::of(&mut context);
    let (all, stride) = (Numbers::of(queries.tensor.array()), queries.tensor.width());
    parallel(rows.div_ceil(group), |task| {
        let mut room = cpu::Room::new(sizes, longest);
        for (row, seen) in seen.iter().enumerate().skip(task * group).take(group) {
            let start = row * stride + queries.columns.start;
            let query = all.part(start..start + options.key_width);
            // SAFETY: every row belongs to one task.
            let context = unsafe { out.slice(row * value_width..(row + 1) * value_width) };
            room.attend(query, seen, context);
        }
    });
    Tensor::new(context)
}

/// The width of the values.
fn check(queries: &Part, seen: &[KeyValueRows<'_>], options: CachedAttentionOptions) -> usize {
    let CachedAttentionOptions { heads, key_width, .. } = options;
    let (tensor, columns) = (&queries.tensor, &queries.columns);
    assert!(columns.end <= tensor.width(), "cached attention: queries are columns {columns:?} of {tensor:?}");
    let width = columns.len();
    assert_eq!(width, key_width, "cached attention: queries of width {width} and keys of width {key_width}");
    assert_eq!(tensor.rows(), seen.len(), "cached attention: {tensor:?} and {} lists of keys", seen.len());
    assert!(!seen.is_empty(), "cached attention: no query");
    let stored = seen[0].array().width();
    for (row, seen) in seen.iter().enumerate() {
        let array = seen.array();
        assert!(seen.len() > 0, "cached attention: query {row} sees no key");
        assert!(
            seen.end() <= array.rows() && array.width() == stored && array.dtype() == tensor.dtype(),
            "cached attention: query {row} of {tensor:?} sees row {} of {array:?}",
            seen.end() - 1
        );
    }
    let value_width = stored.saturating_sub(key_width);
    assert!(
        heads > 0 && value_width > 0 && key_width.is_multiple_of(heads) && value_width.is_multiple_of(heads),
        "cached attention: keys of width {key_width} and values of width {value_width} among {heads} heads"
    );
    value_width
}
