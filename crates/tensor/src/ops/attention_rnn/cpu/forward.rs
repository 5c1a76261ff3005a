//! Steps forward: attend to the source, then step the cell.

use std::ops::Range;

use half::bf16;

use super::attend::{Common, attend, choice};
use super::of;
use crate::cpu::gemm::{Finish, Matrix, Output, Packed, multiply};
use crate::cpu::number::{self, Element, Number};
use crate::cpu::threads::{SharedMut, parallel};
use crate::ops::attention_rnn::{Decoder, Forward, Kept, Selection};
use crate::ops::recurrent::Cell;
use crate::ops::recurrent::cpu::cell::{ForwardRow, forward_row};
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
    let common = Common::of_decoder(decoder, score_weight.as_deref());
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
        kept: Kept {
            gates: Array::scratch(T::DTYPE, tokens, cell.kept() * d),
            c: by_token(c.width()),
            queries: by_token(key_width),
            taken: None,
        },
    };
    // By row: the operands of a step's products and what they give.
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
            kept_queries: SharedMut::new(out.kept.queries.f32_mut()),
            choices: SharedMut::new(out.choices.f32_mut()),
            taken: SharedMut::new(&mut out.taken),
        };
        parallel(rows, |row| attend_row(&attention, row));
        product(&left_context, &context, &mut input_side, None);
        let cells = CellStep::<T> {
            cell,
            d,
            tokens,
            x: T::of(x),
            input_side: SharedMut::new(input_side.f32_mut()),
            hidden_side: hidden_side.f32(),
            h: SharedMut::new(h.f32_mut()),
            c: SharedMut::new(c.f32_mut()),
            left: SharedMut::new(T::of_mut(&mut left)),
            states: SharedMut::new(out.states.f32_mut()),
            states_narrow: out.states_narrow.as_mut().map(|narrow| SharedMut::new(narrow.bf16_mut())),
            kept_gates: SharedMut::new(T::of_mut(&mut out.kept.gates)),
            kept_c: SharedMut::new(out.kept.c.f32_mut()),
        };
        let together = (ROW_TASK / gates.max(1)).max(1);
        parallel(rows.div_ceil(together), |task| {
            step_rows(&cells, task * together..((task + 1) * together).min(rows));
        });
    }
    out
}

/// Gate values of one task: so few rows that threads finish together, so many that a hand-over is worth it.
pub(super) const ROW_TASK: usize = 8192;

/// The attention of one step.
pub(super) struct AttentionStep<'a, T> {
    common: &'a Common<'a>,
    number: usize,
    tokens: &'a [usize],
    order: &'a [usize],
    queries: &'a [f32],
    longest: usize,
    /// If they are not kept, every row of the step has room for the longest source.
    weights: SharedMut<f32>,
    contexts: SharedMut<f32>,
    contexts_narrow: Option<SharedMut<bf16>>,
    left_context: SharedMut<T>,
    kept_queries: SharedMut<f32>,
    choices: SharedMut<f32>,
    taken: SharedMut<Option<usize>>,
}

/// The cells of one step.
pub(super) struct CellStep<'a, T> {
    cell: Cell,
    d: usize,
    tokens: &'a [usize],
    x: &'a [T],
    input_side: SharedMut<f32>,
    hidden_side: &'a [f32],
    h: SharedMut<f32>,
    c: SharedMut<f32>,
    left: SharedMut<T>,
    states: SharedMut<f32>,
    states_narrow: Option<SharedMut<bf16>>,
    kept_gates: SharedMut<T>,
    kept_c: SharedMut<f32>,
}

kernel! {
    fn attend_row<T: Element>(step: &AttentionStep<'_, T>, row: usize) {
        let (common, token, sequence) = (step.common, step.tokens[row], step.order[row]);
        let source = common.source::<T>(sequence, step.number);
        let (key_width, value_width) = (source.key_width, source.value_width);
        let query = &step.queries[of(row, key_width)];
        let start = row * step.longest;
        let again = start..start + common.sources.length(sequence);
        // SAFETY: a row has a token, a source and weights that no other row of the step has; here and below.
        let weights = unsafe { step.weights.slice(common.kept(sequence, step.number).unwrap_or(again)) };
        // SAFETY: as above.
        let context = unsafe { step.contexts.slice(of(token, value_width)) };
        let taken =
            attend(common.compare, common.selection, token, query, source, (&mut *weights, &mut *context));
        // SAFETY: as above.
        number::copy(query, unsafe { step.kept_queries.slice(of(token, key_width)) });
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

kernel! {
    fn step_rows<T: Number>(cells: &CellStep<'_, T>, rows: Range<usize>) {
        let (cell, d) = (cells.cell, cells.d);
        let gates = cell.gates() * d;
        let d_c = if cell.has_memory() { d } else { 0 };
        for row in rows {
            let token = cells.tokens[row];
            // SAFETY: a row belongs to one task and has a token of its own; here and below.
            let input_side = unsafe { cells.input_side.slice(of(row, gates)) };
            for (sum, x) in input_side.iter_mut().zip(&cells.x[of(token, gates)]) {
                *sum += x.wide();
            }
            // SAFETY: as above.
            let (h, c) = unsafe { (cells.h.slice(of(row, d)), cells.c.slice(of(row, d_c))) };
            forward_row(
                cell,
                ForwardRow {
                    x: &*input_side,
                    a: &cells.hidden_side[of(row, gates)],
                    h,
                    c,
                    // SAFETY: as above.
                    kept: Some(unsafe { cells.kept_gates.slice(of(token, cell.kept() * d)) }),
                },
            );
            // SAFETY: as above.
            number::copy(h, unsafe { cells.left.slice(of(row, d)) });
            // SAFETY: as above.
            number::copy(h, unsafe { cells.states.slice(of(token, d)) });
            if let Some(narrow) = &cells.states_narrow {
                // SAFETY: as above.
                number::copy(h, unsafe { narrow.slice(of(token, d)) });
            }
            // SAFETY: as above.
            number::copy(c, unsafe { cells.kept_c.slice(of(token, d_c)) });
        }
    }
}
