//! All tokens of all targets: forward a task for each token, backward one for each sequence, whose tokens
//! share a source.

use half::bf16;

use super::attend::{
    BatchAttention, Compare, InputGradients, OutputGradients, attend, attend_backward, choice,
    compute_weights,
};
use super::of;
use super::scores::scores;
use crate::cpu::number::{self, Element};
use crate::cpu::threads::{SharedMut, parallel};
use crate::ops::attention_rnn::Selection;
use crate::ops::attention_rnn::tokens::{
    TokenAttention, TokensBackwardInputs, TokensForward, TokensGradients,
};
use crate::{Array, DType, Param, Ragged};

/// The contexts of all tokens; also all scores if requested.
pub(in crate::ops::attention_rnn) fn attend_tokens(
    attention: &TokenAttention,
    is_scored: bool,
) -> TokensForward {
    let TokenAttention { targets, values, weight_starts, .. } = attention;
    let (tokens, value_width) = (targets.tokens(), values.width());
    let dtype = values.dtype();
    let kept = weight_starts.as_ref().map_or(0, |starts| starts[targets.sequences()]);
    let mut out = TokensForward {
        contexts: Array::scratch(DType::F32, tokens, value_width),
        contexts_narrow: (dtype == DType::Bf16).then(|| Array::scratch(DType::Bf16, tokens, value_width)),
        weights: Array::scratch(DType::F32, 1, kept),
        choices: Array::scratch(DType::F32, tokens, 2),
        taken: vec![None; tokens],
        scores: None,
        taken_on_gpu: None,
    };
    let score_weight = attention.score_weight.as_ref().map(Param::values);
    let pass = Forward {
        inputs: PassInputs::new(attention, score_weight.as_deref()),
        weights: SharedMut::new(out.weights.f32_mut()),
        contexts: SharedMut::new(out.contexts.f32_mut()),
        contexts_narrow: out.contexts_narrow.as_mut().map(|narrow| SharedMut::new(narrow.bf16_mut())),
        choices: SharedMut::new(out.choices.f32_mut()),
        taken: SharedMut::new(&mut out.taken),
    };
    parallel(tokens, |token| by_type!(dtype, T => attend_token::<T>(&pass, token)));
    if is_scored {
        out.scores = scores(&pass.inputs.common, pass.inputs.queries, targets);
    }
    out
}

/// The gradients of [`attend_tokens`].
pub(in crate::ops::attention_rnn) fn attend_tokens_backward(
    attention: &TokenAttention,
    saved: &TokensBackwardInputs<'_>,
) -> TokensGradients {
    let TokenAttention { targets, sources, keys, values, .. } = attention;
    let score_weight = attention.score_weight.as_ref().map(Param::values);
    let inputs = PassInputs::new(attention, score_weight.as_deref());
    let mut out = TokensGradients {
        dq: Array::scratch(DType::F32, targets.tokens(), keys.width()),
        dk: Array::zeros(DType::F32, keys.rows(), keys.width()),
        dv: Array::zeros(DType::F32, values.rows(), values.width()),
        d_score_weight: Array::zeros(DType::F32, sources.sequences(), inputs.common.compare_width()),
    };
    let pass = Backward {
        inputs,
        weights: saved.weights.map(Array::f32),
        taken: saved.taken,
        d_contexts: saved.d_contexts.f32(),
        d_choices: saved.d_choices.map(Array::f32),
        dq: SharedMut::new(out.dq.f32_mut()),
        dk: SharedMut::new(out.dk.f32_mut()),
        dv: SharedMut::new(out.dv.f32_mut()),
        d_score_weight: SharedMut::new(out.d_score_weight.f32_mut()),
    };
    parallel(
        sources.sequences(),
        |sequence| by_type!(values.dtype(), T => backward_sequence::<T>(&pass, sequence)),
    );
    out
}

/// The inputs of both passes.
struct PassInputs<'a> {
    common: BatchAttention<'a>,
    targets: &'a Ragged,
    queries: &'a [f32],
}

struct Forward<'a> {
    inputs: PassInputs<'a>,
    weights: SharedMut<f32>,
    contexts: SharedMut<f32>,
    contexts_narrow: Option<SharedMut<bf16>>,
    choices: SharedMut<f32>,
    taken: SharedMut<Option<usize>>,
}

struct Backward<'a> {
    inputs: PassInputs<'a>,
    weights: Option<&'a [f32]>,
    taken: &'a [Option<usize>],
    d_contexts: &'a [f32],
    d_choices: Option<&'a [f32]>,
    dq: SharedMut<f32>,
    dk: SharedMut<f32>,
    dv: SharedMut<f32>,
    d_score_weight: SharedMut<f32>,
}

impl<'a> PassInputs<'a> {
    fn new(attention: &'a TokenAttention, score_weight: Option<&'a [f32]>) -> PassInputs<'a> {
        let TokenAttention { selection, targets, sources, mask, queries, keys, values, .. } = attention;
        let common = BatchAttention {
            compare: Compare::new(attention.score, score_weight, keys.width()),
            selection: *selection,
            sources,
            mask,
            weight_starts: attention.weight_starts.as_deref(),
            keys,
            values,
        };
        PassInputs { common, targets, queries: queries.f32() }
    }
}

kernel! {
    fn attend_token<T: Element>(pass: &Forward<'_>, token: usize) {
        let PassInputs { common, targets, queries } = &pass.inputs;
        let sequence = targets.sequence_of(token);
        let number = token - targets.range(sequence).start;
        let source = common.source::<T>(sequence, number);
        let query = &queries[of(token, source.key_width)];
        let kept = common.weight_range(sequence, number);
        let mut scratch =
            Array::scratch(DType::F32, 1, if kept.is_some() { 0 } else { common.sources.length(sequence) });
        let weights = match kept {
            // SAFETY: no other task has this token's weights, context or choices; here and below.
            Some(kept) => unsafe { pass.weights.slice(kept) },
            None => scratch.f32_mut(),
        };
        // SAFETY: as above.
        let context = unsafe { pass.contexts.slice(of(token, source.value_width)) };
        let taken =
            attend(common.compare, common.selection, token, query, source, (&mut *weights, &mut *context));
        if let Some(narrow) = &pass.contexts_narrow {
            // SAFETY: as above.
            number::copy(context, unsafe { narrow.slice(of(token, source.value_width)) });
        }
        // SAFETY: as above.
        let choices = unsafe { pass.choices.slice(of(token, 2)) };
        choices.fill(0.0);
        if !matches!(common.selection, Selection::Soft) {
            choices.copy_from_slice(&choice(weights, taken));
            // SAFETY: as above.
            unsafe { pass.taken.set(token, taken) };
        }
    }
}

kernel! {
    fn backward_sequence<T: Element>(pass: &Backward<'_>, sequence: usize) {
        let PassInputs { common, targets, queries } = &pass.inputs;
        let (rows, tokens) = (common.sources.range(sequence), targets.range(sequence));
        let source = common.source::<T>(sequence, 0);
        let (key_width, value_width) = (source.key_width, source.value_width);
        // SAFETY: no other task has this sequence's source or tokens; here and below.
        let dk = unsafe { pass.dk.slice(rows.start * key_width..rows.end * key_width) };
        // SAFETY: as above.
        let dv = unsafe { pass.dv.slice(rows.start * value_width..rows.end * value_width) };
        // SAFETY: as above.
        let weight = unsafe { pass.d_score_weight.slice(of(sequence, common.compare_width())) };
        let mut scratch = Array::scratch(DType::F32, 2, rows.len());
        let (scratch, recomputed) = scratch.f32_mut().split_at_mut(rows.len());
        for (number, token) in tokens.enumerate() {
            let query = &queries[of(token, key_width)];
            let weights = match (common.weight_range(sequence, number), pass.weights) {
                (Some(kept), Some(weights)) => &weights[kept],
                _ => {
                    let source = common.source::<T>(sequence, number);
                    compute_weights(common.compare, query, source, &mut *recomputed);
                    &*recomputed
                }
            };
            let d_choice =
                pass.d_choices.map_or([0.0; 2], |choices| [choices[2 * token], choices[2 * token + 1]]);
            attend_backward(
                (common.compare, common.selection),
                (query, weights, pass.taken[token]),
                source,
                &OutputGradients { context: &pass.d_contexts[of(token, value_width)], choice: d_choice },
                InputGradients {
                    // SAFETY: as above.
                    query: unsafe { pass.dq.slice(of(token, key_width)) },
                    keys: &mut *dk,
                    values: &mut *dv,
                    weight: &mut *weight,
                    scratch: &mut *scratch,
                },
            );
        }
    }
}
