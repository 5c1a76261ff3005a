//! The scores of all steps, if requested: recomputed from the queries, with the same bits.

use super::attend::{BatchAttention, score};
use super::of;
use crate::cpu::number::Element;
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType, Ragged};

/// For every sequence target tokens × source tokens, in the layout of the saved weights; `None` if those are
/// not saved. `queries` are by token.
pub(super) fn scores(common: &BatchAttention<'_>, queries: &[f32], targets: &Ragged) -> Option<Array> {
    let mut scores = Array::scratch(DType::F32, 1, common.weight_starts?[targets.sequences()]);
    let all = SharedMut::new(scores.f32_mut());
    parallel(
        targets.sequences(),
        |sequence| by_type!(common.keys.dtype(), T => score_sequence::<T>(common, queries, targets, sequence, &all)),
    );
    Some(scores)
}

kernel! {
    fn score_sequence<T: Element>(
        common: &BatchAttention<'_>,
        queries: &[f32],
        targets: &Ragged,
        sequence: usize,
        all: &SharedMut<f32>,
    ) {
        for (number, token) in targets.range(sequence).enumerate() {
            let source = common.source::<T>(sequence, number);
            let range = common.weight_range(sequence, number);
            let range = range.expect("scores have the layout of saved weights");
            // SAFETY: the steps of the sequences write disjoint parts.
            let scores = unsafe { all.slice(range) };
            score(common.compare, &queries[of(token, source.key_width)], source, scores);
        }
    }
}
