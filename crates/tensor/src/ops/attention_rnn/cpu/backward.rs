//! Steps backward: first the cell's gates, then the attention before them.

use super::attend::{BatchAttention, InputGradients, OutputGradients, attend_backward, compute_weights};
use super::of;
use crate::cpu::gemm::{Finish, Matrix, Output, multiply};
use crate::cpu::number::{self, Element};
use crate::cpu::threads::{SharedMut, parallel};
use crate::ops::attention_rnn::{Decoder, DecoderGradients, ResultGradients, SavedForBackward};
use crate::ops::recurrent::Cell;
use crate::ops::recurrent::cpu::BackwardStep;
use crate::params::Orientation;
use crate::{Array, Compute, DType, Param};

/// The whole decoder, from the last step to the first.
pub(super) fn backward<T: Element>(
    decoder: &Decoder,
    inputs: &SavedForBackward,
    gradients: &ResultGradients<'_>,
) -> DecoderGradients {
    let Decoder { cell, schedule, keys, values, weights, .. } = decoder;
    let cell = *cell;
    let packed = |weight: &Param| weight.packed(Orientation::Transposed, Compute::inference(T::DTYPE));
    let (hidden, context, query) =
        (packed(&weights.hidden), packed(&weights.context), weights.query.as_ref().map(packed));
    let score_weight = weights.score_weight.as_ref().map(Param::values);
    let common = BatchAttention::of_decoder(decoder, score_weight.as_deref());
    let (tokens, sequences, d) = (inputs.states.rows(), inputs.h.rows(), inputs.h.width());
    let (gates, key_width, value_width) = (cell.gates() * d, keys.width(), values.width());
    let mut out = DecoderGradients {
        dx: Array::scratch(T::DTYPE, tokens, gates),
        da: (cell == Cell::Gru).then(|| Array::scratch(T::DTYPE, tokens, gates)),
        dq: Array::scratch(T::DTYPE, tokens, key_width),
        dk: Array::zeros(DType::F32, keys.rows(), key_width),
        dv: Array::zeros(DType::F32, keys.rows(), value_width),
        d_score_weight: Array::zeros(DType::F32, sequences, common.compare_width()),
        dh: Array::zeros(DType::F32, sequences, d),
        dc: Array::zeros(DType::F32, sequences, inputs.c.width()),
    };
    // By row: the left factors of products.
    let mut left_hidden = Array::scratch(T::DTYPE, sequences, gates);
    let mut left_input = Array::scratch(T::DTYPE, sequences, gates);
    let mut left_query = Array::scratch(T::DTYPE, sequences, key_width);
    let mut d_context = Array::scratch(DType::F32, sequences, value_width);
    let mut d_query = Array::scratch(DType::F32, sequences, key_width);
    let longest = decoder.sources.longest();
    let mut scratch = Array::scratch(DType::F32, sequences, longest);
    let is_saved = inputs.attention.is_some();
    let mut recomputed = Array::scratch(DType::F32, sequences, if is_saved { 0 } else { longest });
    for step in (0..schedule.steps()).rev() {
        let tokens = schedule.tokens(step);
        let rows = tokens.len();
        let da = out.da.as_mut().map(|da| SharedMut::new(T::of_mut(da)));
        let cells = BackwardStep::<T> {
            cell,
            d,
            tokens,
            before: schedule.before(step),
            outputs: inputs.states.f32(),
            saved_gates: T::of(&inputs.activations.gates),
            saved_c: inputs.activations.c.f32(),
            initial_h: inputs.h.f32(),
            initial_c: inputs.c.f32(),
            d_outputs: gradients.states.f32(),
            dh: SharedMut::new(out.dh.f32_mut()),
            dc: SharedMut::new(out.dc.f32_mut()),
            dx: &SharedMut::new(T::of_mut(&mut out.dx)),
            da: da.as_ref(),
            left_input: Some(SharedMut::new(T::of_mut(&mut left_input))),
            left: SharedMut::new(T::of_mut(&mut left_hidden)),
        };
        cells.run();
        // input side = x + context W_c
        let product = Output::F32(&mut d_context.f32_mut()[..rows * value_width]);
        multiply(Matrix::of(&left_input).rows(0..rows), &context, product, Finish::NONE);
        // hidden side = h_{t−1} W_h + b
        let before = &mut out.dh.f32_mut()[..rows * d];
        multiply(Matrix::of(&left_hidden).rows(0..rows), &hidden, Output::AddF32(before), Finish::NONE);
        let attention = AttentionStep::<T> {
            common: &common,
            number: step,
            tokens,
            order: schedule.order(),
            queries: inputs.activations.queries.f32(),
            saved: inputs.attention.as_deref().map(Array::f32),
            recomputed: SharedMut::new(recomputed.f32_mut()),
            taken: &inputs.taken,
            d_contexts: gradients.contexts.map(Array::f32),
            d_choices: gradients.choices.map(Array::f32),
            d_context: SharedMut::new(d_context.f32_mut()),
            d_query: SharedMut::new(d_query.f32_mut()),
            dq: SharedMut::new(T::of_mut(&mut out.dq)),
            left_query: SharedMut::new(T::of_mut(&mut left_query)),
            dk: SharedMut::new(out.dk.f32_mut()),
            dv: SharedMut::new(out.dv.f32_mut()),
            d_score_weight: SharedMut::new(out.d_score_weight.f32_mut()),
            scratch: SharedMut::new(scratch.f32_mut()),
            longest,
        };
        parallel(rows, |row| attend_backward_row(&attention, row));
        // q = h_{t−1} W_q, or the state itself
        let before = &mut out.dh.f32_mut()[..rows * d];
        match &query {
            Some(query) => {
                multiply(Matrix::of(&left_query).rows(0..rows), query, Output::AddF32(before), Finish::NONE);
            }
            None => {
                for (before, dq) in before.iter_mut().zip(d_query.f32()) {
                    *before += dq;
                }
            }
        }
    }
    out
}

/// The attention of one step.
pub(super) struct AttentionStep<'a, T> {
    common: &'a BatchAttention<'a>,
    number: usize,
    tokens: &'a [usize],
    order: &'a [usize],
    /// By token.
    queries: &'a [f32],
    /// All weights, if they were saved.
    saved: Option<&'a [f32]>,
    /// By row: the recomputed weights if they were not.
    recomputed: SharedMut<f32>,
    taken: &'a [Option<usize>],
    d_contexts: Option<&'a [f32]>,
    d_choices: Option<&'a [f32]>,
    /// By row.
    d_context: SharedMut<f32>,
    d_query: SharedMut<f32>,
    /// By token.
    dq: SharedMut<T>,
    /// By row.
    left_query: SharedMut<T>,
    /// By source token.
    dk: SharedMut<f32>,
    dv: SharedMut<f32>,
    /// By row.
    d_score_weight: SharedMut<f32>,
    scratch: SharedMut<f32>,
    longest: usize,
}

kernel! {
    fn attend_backward_row<T: Element>(step: &AttentionStep<'_, T>, row: usize) {
        let (common, token, sequence) = (step.common, step.tokens[row], step.order[row]);
        let seen = common.source::<T>(sequence, step.number);
        let (key_width, value_width) = (seen.key_width, seen.value_width);
        let source = common.sources.range(sequence);
        let keys = source.start * key_width..source.end * key_width;
        let values = source.start * value_width..source.end * value_width;
        // SAFETY: no other row of the step has the same token or source; here and below.
        let context = unsafe { step.d_context.slice(of(row, value_width)) };
        if let Some(d_contexts) = step.d_contexts {
            for (context, also) in context.iter_mut().zip(&d_contexts[of(token, value_width)]) {
                *context += also;
            }
        }
        let choice =
            step.d_choices.map_or([0.0; 2], |d_choices| [d_choices[2 * token], d_choices[2 * token + 1]]);
        // SAFETY: as above.
        let query = unsafe { step.d_query.slice(of(row, key_width)) };
        let query_values = &step.queries[of(token, key_width)];
        let weights = match (common.weight_range(sequence, step.number), step.saved) {
            (Some(range), Some(saved)) => &saved[range],
            _ => {
                // SAFETY: as above.
                let recomputed =
                    unsafe { step.recomputed.slice(row * step.longest..row * step.longest + source.len()) };
                compute_weights(common.compare, query_values, seen, &mut *recomputed);
                &*recomputed
            }
        };
        // SAFETY: as above, and the source's rows are this row's alone.
        let grads = unsafe {
            InputGradients {
                query: &mut *query,
                keys: step.dk.slice(keys),
                values: step.dv.slice(values),
                weight: step.d_score_weight.slice(of(row, common.compare_width())),
                scratch: step.scratch.slice(row * step.longest..row * step.longest + source.len()),
            }
        };
        attend_backward(
            (common.compare, common.selection),
            (query_values, weights, step.taken[token]),
            seen,
            &OutputGradients { context, choice },
            grads,
        );
        // SAFETY: as above.
        number::copy(query, unsafe { step.left_query.slice(of(row, key_width)) });
        // SAFETY: as above.
        number::copy(query, unsafe { step.dq.slice(of(token, key_width)) });
    }
}
