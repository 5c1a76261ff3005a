//! The scores of all steps, for whoever wants to see them: computed once more from the queries, to the same bits.

use half::bf16;

use super::attend::{Compare, Hidden, Source, score};
use crate::cpu::number::Element;
use crate::cpu::threads::{SharedMut, parallel};
use crate::ops::{AttentionScore, Mask};
use crate::{Array, DType, Param, Ragged};

/// What queries are compared with, and how.
pub(in crate::ops::attention_rnn) struct Compared<'a> {
    pub(in crate::ops::attention_rnn) score: AttentionScore,
    /// `w` of the additive score.
    pub(in crate::ops::attention_rnn) score_weight: Option<&'a Param>,
    pub(in crate::ops::attention_rnn) keys: &'a Array,
    pub(in crate::ops::attention_rnn) sources: &'a Ragged,
    pub(in crate::ops::attention_rnn) mask: &'a Mask,
    /// Where the scores of each sequence begin, and where the last end.
    pub(in crate::ops::attention_rnn) starts: &'a [usize],
}

/// For every sequence target tokens × source tokens, laid end to end as the weights are; `queries` are by token.
pub(in crate::ops::attention_rnn) fn scores(with: &Compared<'_>, queries: &Array, targets: &Ragged) -> Array {
    let mut scores = Array::scratch(DType::F32, 1, with.starts[targets.sequences()]);
    let score_weight = with.score_weight.map(Param::values);
    let all = AllScores {
        compare: Compare::new(with.score, score_weight.as_deref(), with.keys.width()),
        queries: queries.f32(),
        keys: with.keys,
        targets,
        sources: with.sources,
        mask: with.mask,
        starts: with.starts,
        scores: SharedMut::new(scores.f32_mut()),
    };
    parallel(targets.sequences(), |sequence| match with.keys.dtype() {
        DType::F32 => score_sequence::<f32>(&all, sequence),
        DType::Bf16 => score_sequence::<bf16>(&all, sequence),
    });
    scores
}

struct AllScores<'a> {
    compare: Compare<'a>,
    queries: &'a [f32],
    keys: &'a Array,
    targets: &'a Ragged,
    sources: &'a Ragged,
    mask: &'a Mask,
    starts: &'a [usize],
    scores: SharedMut<f32>,
}

kernel! {
    fn score_sequence<T: Element>(all: &AllScores<'_>, sequence: usize) {
        let (key_width, source) = (all.keys.width(), all.sources.range(sequence));
        let keys = &T::of(all.keys)[source.start * key_width..source.end * key_width];
        for (step, token) in all.targets.range(sequence).enumerate() {
            let start = all.starts[sequence] + step * source.len();
            // SAFETY: every step of every sequence has its own part.
            let scores = unsafe { all.scores.slice(start..start + source.len()) };
            let query = &all.queries[token * key_width..(token + 1) * key_width];
            let hidden = Hidden::of(all.mask, sequence, step);
            score(all.compare, query, Source { keys, values: &[], key_width, value_width: 0, hidden }, scores);
        }
    }
}
