//! Rows with their own sources, a task for each row.

use super::attend::{Compare, Source, attend};
use crate::cpu::number::Element;
use crate::cpu::threads::{SharedMut, parallel};
use crate::ops::AttentionScore;
use crate::ops::attention_rnn::{Selection, SourceRows};
use crate::{Array, DType, Param};

/// The context of each query; `sources` is not empty.
pub(in crate::ops::attention_rnn) fn attend_rows(
    queries: &Array,
    sources: &[SourceRows<'_>],
    score: AttentionScore,
    score_weight: Option<&Param>,
    selection: Selection,
) -> Array {
    let (rows, first) = (queries.rows(), &sources[0]);
    let mut contexts = Array::scratch(DType::F32, rows, first.values.width());
    let longest = sources.iter().map(|source| source.rows.len()).max().unwrap_or(0);
    let mut weights = Array::scratch(DType::F32, rows, longest);
    let score_weight = score_weight.map(Param::values);
    let step = RowsStep {
        compare: Compare::new(score, score_weight.as_deref(), queries.width()),
        selection,
        queries: queries.f32(),
        sources,
        longest,
        weights: SharedMut::new(weights.f32_mut()),
        contexts: SharedMut::new(contexts.f32_mut()),
    };
    parallel(rows, |row| by_type!(first.keys.dtype(), T => attend_row::<T>(&step, row)));
    contexts
}

struct RowsStep<'a> {
    compare: Compare<'a>,
    selection: Selection,
    queries: &'a [f32],
    sources: &'a [SourceRows<'a>],
    longest: usize,
    weights: SharedMut<f32>,
    contexts: SharedMut<f32>,
}

kernel! {
    fn attend_row<T: Element>(step: &RowsStep<'_>, row: usize) {
        let SourceRows { keys, values, rows } = &step.sources[row];
        let (key_width, value_width) = (keys.width(), values.width());
        let seen = Source {
            keys: &T::of(keys)[rows.start * key_width..rows.end * key_width],
            values: &T::of(values)[rows.start * value_width..rows.end * value_width],
            key_width,
            value_width,
            mask: None,
        };
        let start = row * step.longest;
        // SAFETY: every row is processed once and has its own part of both.
        let weights = unsafe { step.weights.slice(start..start + rows.len()) };
        // SAFETY: as above.
        let context = unsafe { step.contexts.slice(row * value_width..(row + 1) * value_width) };
        let query = &step.queries[row * key_width..(row + 1) * key_width];
        attend(step.compare, step.selection, row, query, seen, (weights, context));
    }
}
