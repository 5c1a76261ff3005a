//! The scores of all steps, for whoever wants to see them: computed once more from the queries, to the same bits.

use half::bf16;

use super::attend::{Compare, Source, score};
use crate::cpu::number::{Element, Number};
use crate::cpu::threads::{SharedMut, parallel};
use crate::ops::attention_rnn::Decoder;
use crate::{Array, DType, Param, Ragged};

/// For every sequence target tokens × source tokens, laid end to end as the weights are; `queries` are by token.
pub(in crate::ops::attention_rnn) fn scores(
    decoder: &Decoder<'_>,
    queries: &Array,
    targets: &Ragged,
) -> Array {
    let starts = decoder.weight_starts.expect("weights that are handed out are kept");
    let mut scores = Array::scratch(DType::F32, 1, starts[targets.sequences()]);
    let score_weight = decoder.weights.score_weight.map(Param::values);
    let all = AllScores {
        compare: Compare::new(decoder.weights.score, score_weight.as_deref(), decoder.keys.width()),
        queries: queries.f32(),
        keys: decoder.keys,
        targets,
        sources: decoder.sources,
        starts,
        scores: SharedMut::new(scores.f32_mut()),
    };
    parallel(targets.sequences(), |sequence| match decoder.dtype {
        DType::F32 => score_f32(&all, sequence),
        DType::Bf16 => score_bf16(&all, sequence),
    });
    scores
}

struct AllScores<'a> {
    compare: Compare<'a>,
    queries: &'a [f32],
    keys: &'a Array,
    targets: &'a Ragged,
    sources: &'a Ragged,
    starts: &'a [usize],
    scores: SharedMut<f32>,
}

kernel! {
    fn score_f32(all: &AllScores<'_>, sequence: usize) {
        score_sequence::<f32>(all, sequence);
    }
}

kernel! {
    fn score_bf16(all: &AllScores<'_>, sequence: usize) {
        score_sequence::<bf16>(all, sequence);
    }
}

#[inline(always)]
fn score_sequence<T: Element + Number>(all: &AllScores<'_>, sequence: usize) {
    let (key_width, source) = (all.keys.width(), all.sources.range(sequence));
    let keys = &T::of(all.keys)[source.start * key_width..source.end * key_width];
    for (step, token) in all.targets.range(sequence).enumerate() {
        let start = all.starts[sequence] + step * source.len();
        // SAFETY: every step of every sequence has its own part.
        let scores = unsafe { all.scores.slice(start..start + source.len()) };
        let query = &all.queries[token * key_width..(token + 1) * key_width];
        score(all.compare, query, Source { keys, values: &[], key_width, value_width: 0 }, scores);
    }
}
