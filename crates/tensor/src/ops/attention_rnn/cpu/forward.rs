//! Steps forward: attend to the source, then step the cell.

use half::bf16;

use super::attend::{BatchAttention, attend, choice};
use super::of;
use crate::cpu::gemm::{Finish, Matrix, Output, Packed, multiply};
use crate::cpu::number::{self, Element};
use crate::cpu::threads::{SharedMut, parallel};
use crate::ops::attention_rnn::{Decoder, Forward, SavedActivations, Selection};
use crate::ops::recurrent::cpu::{ForwardStep, Record};
use crate::params::Orientation;
use crate::{Array, Compute, DType, Param};

/// The whole decoder, in the compute type `T`.
pub(super) fn forward<T: Element>(decoder: &Decoder, x: &Array, states: [Array; 2]) -> Forward {
    let Decoder { cell, schedule, keys, values, weights, .. } = decoder;
    let cell = *cell;
    let [mut h, mut c] = states;
    let packed = |weight: &Param| weight.packed(Orientation::AsIs, Compute::inference(T::DTYPE));
    let (hidden, context, query) =
        (packed(&weights.hidden), packed(&weights.context), weights.query.as_ref().map(packed));
    let (bias, score_weight) =
        (weights.bias.as_ref().map(Param::values), weights.score_weight.as_ref().map(Param::values));
    let bias = bias.as_deref();
    let common = BatchAttention::of_decoder(decoder, score_weight.as_deref());
    let (tokens, sequences, d) = (x.rows(), h.rows(), h.width());
    let (gates, key_width, value_width) = (cell.gates() * d, keys.width(), values.width());
    let narrow = |width: usize| (T::DTYPE == DType::Bf16).then(|| Array::scratch(DType::Bf16, tokens, width));
    let by_token = |width: usize| Array::scratch(DType::F32, tokens, width);
    let longest = decoder.sources.longest();
    let mut out = Forward {
        states: by_token(d),
        states_narrow: narrow(d),
        contexts: by_token(value_width),
        contexts_narrow: narrow(value_width),
        weights: match decoder.weight_starts.as_deref() {
            Some(starts) => Array::scratch(DType::F32, 1, starts[sequences]),
            None => Array::scratch(DType::F32, sequences, longest),
        },
        choices: by_token(2),
        taken: vec![None; tokens],
        scores: None,
        activations: SavedActivations {
            gates: Array::scratch(T::DTYPE, tokens, cell.saved_values() * d),
            c: by_token(c.width()),
            queries: by_token(key_width),
            taken: None,
        },
    };
    // By row: the operands and results of a step's products.
    let mut left = h.to(T::DTYPE);
    let mut left_context = Array::scratch(T::DTYPE, sequences, value_width);
    let mut queries = Array::scratch(DType::F32, sequences, key_width);
    let mut hidden_side = Array::scratch(DType::F32, sequences, gates);
    let mut input_side = Array::scratch(DType::F32, sequences, gates);
    for step in 0..schedule.steps() {
        let tokens = schedule.tokens(step);
        let rows = tokens.len();
        let product = |left: &Array, weight: &Packed, out: &mut Array, bias: Option<&[f32]>| {
            let width = out.width();
            let out = Output::F32(&mut out.f32_mut()[..rows * width]);
            multiply(Matrix::of(left).rows(0..rows), weight, out, Finish { bias, ..Finish::NONE });
        };
        match &query {
            Some(query) => product(&left, query, &mut queries, None),
            None => queries.f32_mut()[..rows * d].copy_from_slice(&h.f32()[..rows * d]),
        }
        product(&left, &hidden, &mut hidden_side, bias);
        let attention = AttentionStep::<T> {
            common: &common,
            number: step,
            tokens,
            order: schedule.order(),
            queries: queries.f32(),
            longest,
            weights: SharedMut::new(out.weights.f32_mut()),
            contexts: SharedMut::new(out.contexts.f32_mut()),
            contexts_narrow: out.contexts_narrow.as_mut().map(|narrow| SharedMut::new(narrow.bf16_mut())),
            left_context: SharedMut::new(T::of_mut(&mut left_context)),
            saved_queries: SharedMut::new(out.activations.queries.f32_mut()),
            choices: SharedMut::new(out.choices.f32_mut()),
            taken: SharedMut::new(&mut out.taken),
        };
        parallel(rows, |row| attend_row(&attention, row));
        product(&left_context, &context, &mut input_side, None);
        let record = Record {
            outputs: SharedMut::new(out.states.f32_mut()),
            narrow: out.states_narrow.as_mut().map(|narrow| SharedMut::new(narrow.bf16_mut())),
            c: Some(SharedMut::new(out.activations.c.f32_mut())),
        };
        let cells = ForwardStep::<T> {
            cell,
            d,
            tokens: Some(tokens),
            x: T::of(x),
            input_side: Some(SharedMut::new(input_side.f32_mut())),
            a: hidden_side.f32(),
            h: SharedMut::new(h.f32_mut()),
            c: SharedMut::new(c.f32_mut()),
            left: Some(SharedMut::new(T::of_mut(&mut left))),
            saved: Some(&SharedMut::new(T::of_mut(&mut out.activations.gates))),
            record: Some(&record),
        };
        cells.run(rows);
    }
    out
}

/// The attention of one step.
pub(super) struct AttentionStep<'a, T> {
    common: &'a BatchAttention<'a>,
    number: usize,
    tokens: &'a [usize],
    order: &'a [usize],
    queries: &'a [f32],
    longest: usize,
    /// If they are not saved, every row of the step has a buffer for the longest source.
    weights: SharedMut<f32>,
    contexts: SharedMut<f32>,
    contexts_narrow: Option<SharedMut<bf16>>,
    left_context: SharedMut<T>,
    saved_queries: SharedMut<f32>,
    choices: SharedMut<f32>,
    taken: SharedMut<Option<usize>>,
}

kernel! {
    fn attend_row<T: Element>(step: &AttentionStep<'_, T>, row: usize) {
        let (common, token, sequence) = (step.common, step.tokens[row], step.order[row]);
        let source = common.source::<T>(sequence, step.number);
        let (key_width, value_width) = (source.key_width, source.value_width);
        let query = &step.queries[of(row, key_width)];
        let start = row * step.longest;
        let recomputed = start..start + common.sources.length(sequence);
        let range = common.weight_range(sequence, step.number).unwrap_or(recomputed);
        // SAFETY: no other row of the step has the same token, source or weights; here and below.
        let weights = unsafe { step.weights.slice(range) };
        // SAFETY: as above.
        let context = unsafe { step.contexts.slice(of(token, value_width)) };
        let taken =
            attend(common.compare, common.selection, token, query, source, (&mut *weights, &mut *context));
        // SAFETY: as above.
        number::copy(query, unsafe { step.saved_queries.slice(of(token, key_width)) });
        // SAFETY: as above.
        number::copy(context, unsafe { step.left_context.slice(of(row, value_width)) });
        if let Some(narrow) = &step.contexts_narrow {
            // SAFETY: as above.
            number::copy(context, unsafe { narrow.slice(of(token, value_width)) });
        }
        // SAFETY: as above.
        let choices = unsafe { step.choices.slice(of(token, 2)) };
        choices.fill(0.0);
        if !matches!(common.selection, Selection::Soft) {
            choices.copy_from_slice(&choice(weights, taken));
            // SAFETY: as above.
            unsafe { step.taken.set(token, taken) };
        }
    }
}
