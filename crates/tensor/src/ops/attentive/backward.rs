//! Steps backward: the cell's gates first, then the look that came before them.

use std::ops::Range;

use half::bf16;

use super::forward::{Kept, Kernels, ROW_TASK};
use super::look::{Compare, Looking, Returned, Slopes, Source, look_back};
use crate::cpu::gemm::{Finish, Matrix, Output, Packed, multiply};
use crate::cpu::number::{self, Number};
use crate::cpu::threads::{SharedMut, parallel};
use crate::ops::recurrent::cell::{BackwardRow, Cell, backward_row};
use crate::ops::recurrent::schedule::{Before, Schedule};
use crate::{Array, DType, Ragged};

/// What the gradients are computed from.
pub(super) struct Inputs<'a> {
    pub(super) cell: Cell,
    pub(super) compare: Compare<'a>,
    pub(super) looking: Looking,
    pub(super) schedule: &'a Schedule,
    pub(super) sources: &'a Ragged,
    pub(super) keys: &'a Array,
    pub(super) values: &'a Array,
    /// All transposed.
    pub(super) hidden: &'a Packed,
    pub(super) context: &'a Packed,
    pub(super) query: Option<&'a Packed>,
    /// The initial states, in the schedule's order.
    pub(super) h: &'a Array,
    pub(super) c: &'a Array,
    pub(super) weight_starts: &'a [usize],
    pub(super) states: &'a Array,
    pub(super) weights: &'a Array,
    pub(super) taken: &'a [Option<usize>],
    pub(super) kept: &'a Kept,
    /// Gradients of what the decoder gave; the latter two may not have been used.
    pub(super) d_states: &'a Array,
    pub(super) d_contexts: Option<&'a Array>,
    pub(super) d_choices: Option<&'a Array>,
}

/// The gradients.
pub(super) struct Outputs {
    /// tokens × gates·d, in the compute type.
    pub(super) dx: Array,
    /// The hidden side's, where it is another one: the GRU's.
    pub(super) da: Option<Array>,
    /// tokens × key width, in the compute type.
    pub(super) dq: Array,
    /// source tokens × widths, f32.
    pub(super) dk: Array,
    pub(super) dv: Array,
    /// sequences × key width: each source's part of the additive score's gradient.
    pub(super) d_compare: Array,
    /// Of the initial states, in the schedule's order.
    pub(super) dh: Array,
    pub(super) dc: Array,
}

/// The whole decoder, from the last step to the first.
pub(super) fn backward<T: Kernels>(inputs: &Inputs<'_>) -> Outputs {
    let Inputs { cell, schedule, keys, values, .. } = *inputs;
    let (tokens, sequences, d) = (inputs.states.rows(), inputs.h.rows(), inputs.h.width());
    let (gates, key_width, value_width) = (cell.gates() * d, keys.width(), values.width());
    let additive = matches!(inputs.compare, Compare::Additive { .. });
    let mut out = Outputs {
        dx: Array::scratch(T::DTYPE, tokens, gates),
        da: (cell == Cell::Gru).then(|| Array::scratch(T::DTYPE, tokens, gates)),
        dq: Array::scratch(T::DTYPE, tokens, key_width),
        dk: Array::zeros(DType::F32, keys.rows(), key_width),
        dv: Array::zeros(DType::F32, keys.rows(), value_width),
        d_compare: Array::zeros(DType::F32, sequences, if additive { key_width } else { 0 }),
        dh: Array::zeros(DType::F32, sequences, d),
        dc: Array::zeros(DType::F32, sequences, inputs.c.width()),
    };
    // By row: the left sides of products.
    let mut left_hidden = Array::scratch(T::DTYPE, sequences, gates);
    let mut left_input = Array::scratch(T::DTYPE, sequences, gates);
    let mut left_query = Array::scratch(T::DTYPE, sequences, key_width);
    let mut d_context = Array::scratch(DType::F32, sequences, value_width);
    let mut d_query = Array::scratch(DType::F32, sequences, key_width);
    let longest = inputs.sources.longest();
    let mut scratch = Array::scratch(DType::F32, sequences, longest);
    for step in (0..schedule.steps()).rev() {
        let tokens = schedule.tokens(step);
        let rows = tokens.len();
        let cells = Cells::<T> {
            cell,
            d,
            tokens,
            before: schedule.before(step),
            states: inputs.states.f32(),
            kept_gates: T::of(&inputs.kept.gates),
            kept_c: inputs.kept.c.f32(),
            initial: [inputs.h.f32(), inputs.c.f32()],
            d_states: inputs.d_states.f32(),
            dh: SharedMut::new(out.dh.f32_mut()),
            dc: SharedMut::new(out.dc.f32_mut()),
            dx: SharedMut::new(T::of_mut(&mut out.dx)),
            da: out.da.as_mut().map(|da| SharedMut::new(T::of_mut(da))),
            left_input: SharedMut::new(T::of_mut(&mut left_input)),
            left_hidden: SharedMut::new(T::of_mut(&mut left_hidden)),
        };
        let together = (ROW_TASK / gates.max(1)).max(1);
        parallel(rows.div_ceil(together), |task| {
            T::step_back(&cells, task * together..((task + 1) * together).min(rows));
        });
        // input side = x + context W_c
        let product = Output::F32(&mut d_context.f32_mut()[..rows * value_width]);
        multiply(Matrix::of(&left_input).rows(0..rows), inputs.context, product, Finish::NONE);
        // hidden side = h_{t−1} W_h + b
        let before = &mut out.dh.f32_mut()[..rows * d];
        multiply(Matrix::of(&left_hidden).rows(0..rows), inputs.hidden, Output::AddF32(before), Finish::NONE);
        let looks = Looks::<T> {
            compare: inputs.compare,
            looking: inputs.looking,
            step,
            tokens,
            order: schedule.order(),
            sources: inputs.sources,
            keys: T::of(keys),
            values: T::of(values),
            widths: [key_width, value_width],
            queries: inputs.kept.queries.f32(),
            weight_starts: inputs.weight_starts,
            weights: inputs.weights.f32(),
            taken: inputs.taken,
            d_contexts: inputs.d_contexts.map(Array::f32),
            d_choices: inputs.d_choices.map(Array::f32),
            d_context: SharedMut::new(d_context.f32_mut()),
            d_query: SharedMut::new(d_query.f32_mut()),
            dq: SharedMut::new(T::of_mut(&mut out.dq)),
            left_query: SharedMut::new(T::of_mut(&mut left_query)),
            dk: SharedMut::new(out.dk.f32_mut()),
            dv: SharedMut::new(out.dv.f32_mut()),
            d_compare: SharedMut::new(out.d_compare.f32_mut()),
            scratch: SharedMut::new(scratch.f32_mut()),
            longest,
        };
        parallel(rows, |row| T::look_back(&looks, row));
        // q = h_{t−1} W_q, or the state itself
        let before = &mut out.dh.f32_mut()[..rows * d];
        match inputs.query {
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

/// The cells of one step.
pub(super) struct Cells<'a, T> {
    cell: Cell,
    d: usize,
    tokens: &'a [usize],
    before: Before<'a>,
    /// By token, but for the initial states.
    states: &'a [f32],
    kept_gates: &'a [T],
    kept_c: &'a [f32],
    initial: [&'a [f32]; 2],
    d_states: &'a [f32],
    /// By row.
    dh: SharedMut<f32>,
    dc: SharedMut<f32>,
    /// By token.
    dx: SharedMut<T>,
    da: Option<SharedMut<T>>,
    /// By row.
    left_input: SharedMut<T>,
    left_hidden: SharedMut<T>,
}

/// The looks of one step.
pub(super) struct Looks<'a, T> {
    compare: Compare<'a>,
    looking: Looking,
    step: usize,
    tokens: &'a [usize],
    order: &'a [usize],
    sources: &'a Ragged,
    keys: &'a [T],
    values: &'a [T],
    widths: [usize; 2],
    /// By token.
    queries: &'a [f32],
    weight_starts: &'a [usize],
    weights: &'a [f32],
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
    d_compare: SharedMut<f32>,
    scratch: SharedMut<f32>,
    longest: usize,
}

kernel! {
    pub(super) fn look_back_f32(looks: &Looks<'_, f32>, row: usize) {
        look_back_row(looks, row);
    }
}

kernel! {
    pub(super) fn look_back_bf16(looks: &Looks<'_, bf16>, row: usize) {
        look_back_row(looks, row);
    }
}

kernel! {
    pub(super) fn step_back_f32(cells: &Cells<'_, f32>, rows: Range<usize>) {
        step_back_rows(cells, rows);
    }
}

kernel! {
    pub(super) fn step_back_bf16(cells: &Cells<'_, bf16>, rows: Range<usize>) {
        step_back_rows(cells, rows);
    }
}

#[inline(always)]
fn of(index: usize, width: usize) -> Range<usize> {
    index * width..(index + 1) * width
}

#[inline(always)]
fn step_back_rows<T: Number>(cells: &Cells<'_, T>, rows: Range<usize>) {
    let (cell, d) = (cells.cell, cells.d);
    let gates = cell.gates() * d;
    let d_c = if cell.has_memory() { d } else { 0 };
    for row in rows {
        let token = cells.tokens[row];
        // SAFETY: a row belongs to one task and has a token of its own; here and below.
        let (dh, dc) = unsafe { (cells.dh.slice(of(row, d)), cells.dc.slice(of(row, d_c))) };
        // SAFETY: as above.
        let left_input = unsafe { cells.left_input.slice(of(row, gates)) };
        // SAFETY: as above.
        let left_hidden = unsafe { cells.left_hidden.slice(of(row, gates)) };
        // h_t is an output, and what the next step starts from.
        for (dh, output) in dh.iter_mut().zip(&cells.d_states[of(token, d)]) {
            *dh += output;
        }
        backward_row(
            cell,
            BackwardRow {
                kept: &cells.kept_gates[of(token, cell.kept() * d)],
                h_previous: cells.before.state(row, d, cells.initial[0], cells.states),
                h: &cells.states[of(token, d)],
                c_previous: cells.before.state(row, d_c, cells.initial[1], cells.kept_c),
                c: &cells.kept_c[of(token, d_c)],
                dh,
                dc,
                dx: &mut *left_input,
                da: &mut *left_hidden,
            },
        );
        // SAFETY: as above.
        unsafe { cells.dx.slice(of(token, gates)) }.copy_from_slice(left_input);
        if let Some(da) = &cells.da {
            // SAFETY: as above.
            unsafe { da.slice(of(token, gates)) }.copy_from_slice(left_hidden);
        }
    }
}

#[inline(always)]
fn look_back_row<T: Number>(looks: &Looks<'_, T>, row: usize) {
    let (token, sequence) = (looks.tokens[row], looks.order[row]);
    let [key_width, value_width] = looks.widths;
    let source = looks.sources.range(sequence);
    let start = looks.weight_starts[sequence] + looks.step * source.len();
    let keys = source.start * key_width..source.end * key_width;
    let values = source.start * value_width..source.end * value_width;
    // SAFETY: a row has a token and a source that no other row of the step has; here and below.
    let context = unsafe { looks.d_context.slice(of(row, value_width)) };
    if let Some(d_contexts) = looks.d_contexts {
        for (context, also) in context.iter_mut().zip(&d_contexts[of(token, value_width)]) {
            *context += also;
        }
    }
    let choice =
        looks.d_choices.map_or([0.0; 2], |d_choices| [d_choices[2 * token], d_choices[2 * token + 1]]);
    // SAFETY: as above.
    let query = unsafe { looks.d_query.slice(of(row, key_width)) };
    let compare_width = if matches!(looks.compare, Compare::Additive { .. }) { key_width } else { 0 };
    // SAFETY: as above, and the source's rows are this row's alone.
    let slopes = unsafe {
        Slopes {
            query: &mut *query,
            keys: looks.dk.slice(keys.clone()),
            values: looks.dv.slice(values.clone()),
            weight: looks.d_compare.slice(of(row, compare_width)),
            scratch: looks.scratch.slice(row * looks.longest..row * looks.longest + source.len()),
        }
    };
    look_back(
        (looks.compare, looks.looking),
        (
            &looks.queries[of(token, key_width)],
            &looks.weights[start..start + source.len()],
            looks.taken[token],
        ),
        Source { keys: &looks.keys[keys], values: &looks.values[values], key_width, value_width },
        &Returned { context, choice },
        slopes,
    );
    // SAFETY: as above.
    number::copy(query, unsafe { looks.left_query.slice(of(row, key_width)) });
    // SAFETY: as above.
    number::copy(query, unsafe { looks.dq.slice(of(token, key_width)) });
}
