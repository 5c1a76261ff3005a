//! Attention of independent rows, for decoding: each row has its own source. No gradient flows back.

use std::ops::Range;

use super::{Selection, cpu, cuda};
use crate::ops::AttentionScore;
use crate::{Array, DType, Device, Param, Tensor};

/// The source of one row: a range of rows of the keys and values of several sentences.
#[derive(Clone)]
pub struct SourceRows<'a> {
    /// In the compute type, as the values.
    pub keys: &'a Array,
    /// As many rows as there are keys.
    pub values: &'a Array,
    /// The rows of this source.
    pub rows: Range<usize>,
}

/// The context of each query in its source: rows × value width, f32. Queries and keys are projected already;
/// `score_weight` is 1 × key width for the additive score.
///
/// # Panics
/// If there is not one source for each query, widths differ, or a source is empty.
pub fn attend_rows(
    queries: &Tensor,
    sources: &[SourceRows<'_>],
    score: AttentionScore,
    score_weight: Option<&Param>,
    selection: Selection,
) -> Tensor {
    let [rows, key_width] = queries.shape();
    assert_eq!(
        sources.len(),
        rows,
        "attend_rows: {} sources for queries of {:?}",
        sources.len(),
        queries.shape()
    );
    let Some(first) = sources.first() else {
        return Tensor::new(Array::zeros_on(queries.device(), DType::F32, 0, 0));
    };
    let value_width = first.values.width();
    for SourceRows { keys, values, rows } in sources {
        assert_eq!(
            keys.width(),
            key_width,
            "attend_rows: keys of {} for queries of {key_width}",
            keys.width()
        );
        assert_eq!(
            values.width(),
            value_width,
            "attend_rows: values of {} and {value_width}",
            values.width()
        );
        assert!(!rows.is_empty(), "attend_rows: a source is empty, there is nothing to attend to");
    }
    super::check_score("attend_rows", score, score_weight, key_width);
    Tensor::new(match queries.device() {
        Device::Cpu => cpu::attend_rows(queries.array(), sources, score, score_weight, selection),
        Device::Cuda => cuda::attend_rows(queries.array(), sources, score, score_weight, selection),
    })
}
