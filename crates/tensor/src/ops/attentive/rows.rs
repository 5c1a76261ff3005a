//! Looks of independent rows, for decoding: each row names the source that it looks at. No gradient flows back.

use std::ops::Range;

use half::bf16;

use super::RowScore;
use super::look::{Compare, Looking, Source, look};
use crate::cpu::number::{Element, Number};
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType, Tensor};

/// The source of one row: some rows of the keys and values of several sentences.
#[derive(Clone)]
pub struct SourceRows<'a> {
    /// In the compute type, as the values.
    pub keys: &'a Array,
    /// As many rows as there are keys.
    pub values: &'a Array,
    /// Which of them.
    pub rows: Range<usize>,
}

/// rows × value width (f32): what each query finds in its source.
///
/// # Panics
/// If there is not one source for each query, widths differ, or a source is empty.
pub fn look_at(
    queries: &Tensor,
    sources: &[SourceRows<'_>],
    score: RowScore<'_>,
    looking: Looking,
) -> Tensor {
    let [rows, key_width] = queries.shape();
    assert_eq!(
        sources.len(),
        rows,
        "look_at: {} sources for queries of {:?}",
        sources.len(),
        queries.shape()
    );
    let Some(first) = sources.first() else { return Tensor::new(Array::zeros(DType::F32, 0, 0)) };
    let value_width = first.values.width();
    for SourceRows { keys, values, rows } in sources {
        assert_eq!(keys.width(), key_width, "look_at: keys of {} for queries of {key_width}", keys.width());
        assert_eq!(values.width(), value_width, "look_at: values of {} and {value_width}", values.width());
        assert!(!rows.is_empty(), "look_at: a source is empty, nothing to look at");
    }
    let mut contexts = Array::scratch(DType::F32, rows, value_width);
    let longest = sources.iter().map(|source| source.rows.len()).max().unwrap_or(0);
    let mut weights = Array::scratch(DType::F32, rows, longest);
    let values = score.values();
    let looks = Looks {
        compare: score.compare(values.as_deref()),
        looking,
        queries: queries.array().f32(),
        sources,
        longest,
        weights: SharedMut::new(weights.f32_mut()),
        contexts: SharedMut::new(contexts.f32_mut()),
    };
    parallel(rows, |row| match first.keys.dtype() {
        DType::F32 => look_f32(&looks, row),
        DType::Bf16 => look_bf16(&looks, row),
    });
    Tensor::new(contexts)
}

struct Looks<'a> {
    compare: Compare<'a>,
    looking: Looking,
    queries: &'a [f32],
    sources: &'a [SourceRows<'a>],
    longest: usize,
    weights: SharedMut<f32>,
    contexts: SharedMut<f32>,
}

kernel! {
    fn look_f32(looks: &Looks<'_>, row: usize) {
        look_row::<f32>(looks, row);
    }
}

kernel! {
    fn look_bf16(looks: &Looks<'_>, row: usize) {
        look_row::<bf16>(looks, row);
    }
}

#[inline(always)]
fn look_row<T: Element + Number>(looks: &Looks<'_>, row: usize) {
    let SourceRows { keys, values, rows } = &looks.sources[row];
    let (key_width, value_width) = (keys.width(), values.width());
    let seen = Source {
        keys: &T::of(keys)[rows.start * key_width..rows.end * key_width],
        values: &T::of(values)[rows.start * value_width..rows.end * value_width],
        key_width,
        value_width,
    };
    let start = row * looks.longest;
    // SAFETY: every row is looked at once and has its own part of both.
    let weights = unsafe { looks.weights.slice(start..start + rows.len()) };
    // SAFETY: as above.
    let context = unsafe { looks.contexts.slice(row * value_width..(row + 1) * value_width) };
    let query = &looks.queries[row * key_width..(row + 1) * key_width];
    look(looks.compare, looks.looking, row, query, seen, (weights, context));
}
