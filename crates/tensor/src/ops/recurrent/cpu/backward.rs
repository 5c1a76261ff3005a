//! Steps backward: the gates' gradients of all active rows, then one small product for the gradient of the
//! previous states.

use std::ops::Range;

use super::cell::{BackwardRow, backward_row};
use super::forward::TASK;
use crate::cpu::gemm::{Finish, Matrix, Output, multiply};
use crate::cpu::number::{Element, Number};
use crate::cpu::threads::{SharedMut, parallel};
use crate::ops::recurrent::schedule::{Before, Schedule};
use crate::ops::recurrent::{Cell, Layer, LayerGradients, SavedForBackward};
use crate::params::Orientation;
use crate::{Array, Compute};

/// The whole layer, from the last step to the first.
pub(super) fn backward<T: Element>(
    layer: &Layer,
    saved: &SavedForBackward,
    d_outputs: &Array,
    d_last: [Array; 2],
) -> LayerGradients {
    let Layer { cell, schedule, weight, .. } = layer;
    let cell = *cell;
    let SavedForBackward { h, c, outputs, activations } = saved;
    let [mut dh, mut dc] = d_last;
    let weight = weight.packed(Orientation::Transposed, Compute::inference(T::DTYPE));
    let (tokens, d) = (outputs.rows(), outputs.width());
    let gates = cell.gates() * d;
    let mut dx = Array::scratch(T::DTYPE, tokens, gates);
    let mut da = (cell == Cell::Gru).then(|| Array::scratch(T::DTYPE, tokens, gates));
    let mut left = Array::scratch(T::DTYPE, h.rows(), gates);
    let shared_dx = SharedMut::new(T::of_mut(&mut dx));
    let shared_da = da.as_mut().map(|da| SharedMut::new(T::of_mut(da)));
    for step in (0..schedule.steps()).rev() {
        let tokens = schedule.tokens(step);
        let rows = tokens.len();
        let job = BackwardStep {
            cell,
            d,
            tokens,
            before: schedule.before(step),
            outputs: outputs.f32(),
            saved_gates: T::of(&activations.gates),
            saved_c: activations.c.f32(),
            initial_h: h.f32(),
            initial_c: c.f32(),
            d_outputs: d_outputs.f32(),
            dh: SharedMut::new(dh.f32_mut()),
            dc: SharedMut::new(dc.f32_mut()),
            dx: &shared_dx,
            da: shared_da.as_ref(),
            left_input: None,
            left: SharedMut::new(T::of_mut(&mut left)),
        };
        job.run();
        // a = h_{t−1} W
        let before = &mut dh.f32_mut()[..rows * d];
        let product = match cell {
            Cell::Gru => Output::AddF32(before),
            Cell::Simple | Cell::Lstm => Output::F32(before),
        };
        multiply(Matrix::of(&left).rows(0..rows), &weight, product, Finish::NONE);
    }
    LayerGradients { dx, da, dh, dc }
}

/// tokens × d in the compute type: the state before each token, the left factor of the weight's gradient.
pub(super) fn states_before<T: Element>(schedule: &Schedule, initial: &Array, outputs: &Array) -> Array {
    let d = outputs.width();
    let mut all = Array::scratch(T::DTYPE, outputs.rows(), d);
    let shared = SharedMut::new(T::of_mut(&mut all));
    parallel(schedule.steps(), |step| {
        let before = schedule.before(step);
        for (row, &token) in schedule.tokens(step).iter().enumerate() {
            // SAFETY: every token is read at one step.
            let to = unsafe { shared.slice(token * d..(token + 1) * d) };
            T::round(before.state(row, d, initial.f32(), outputs.f32()), to);
        }
    });
    all
}

/// One step; see [`super::forward::ForwardStep`].
pub(crate) struct BackwardStep<'a, T> {
    pub(crate) cell: Cell,
    pub(crate) d: usize,
    pub(crate) tokens: &'a [usize],
    pub(crate) before: Before<'a>,
    /// By token, down to `d_outputs`, except the initial states, which are by row.
    pub(crate) outputs: &'a [f32],
    pub(crate) saved_gates: &'a [T],
    pub(crate) saved_c: &'a [f32],
    pub(crate) initial_h: &'a [f32],
    pub(crate) initial_c: &'a [f32],
    pub(crate) d_outputs: &'a [f32],
    /// By row.
    pub(crate) dh: SharedMut<f32>,
    pub(crate) dc: SharedMut<f32>,
    /// By token.
    pub(crate) dx: &'a SharedMut<T>,
    pub(crate) da: Option<&'a SharedMut<T>>,
    /// By row: the left factors of products with the input side's weight, if a step has one, and with the
    /// hidden side's.
    pub(crate) left_input: Option<SharedMut<T>>,
    pub(crate) left: SharedMut<T>,
}

impl<T: Element> BackwardStep<'_, T> {
    pub(crate) fn run(&self) {
        let rows = self.tokens.len();
        let rows_per_task = (TASK / (self.cell.gates() * self.d).max(1)).max(1);
        parallel(rows.div_ceil(rows_per_task), |task| {
            backward_rows(self, task * rows_per_task..((task + 1) * rows_per_task).min(rows));
        });
    }
}

kernel! {
    fn backward_rows<T: Number>(step: &BackwardStep<'_, T>, rows: Range<usize>) {
        let (cell, d) = (step.cell, step.d);
        let gates = cell.gates() * d;
        let d_c = if cell.has_memory() { d } else { 0 };
        for row in rows {
            let token = step.tokens[row];
            let of = |index: usize, width: usize| index * width..(index + 1) * width;
            // SAFETY: every row of a step belongs to one task, and every token to one row; here and below.
            let (dh, dc) = unsafe { (step.dh.slice(of(row, d)), step.dc.slice(of(row, d_c))) };
            // SAFETY: as above.
            let (dx, left) = unsafe { (step.dx.slice(of(token, gates)), step.left.slice(of(row, gates))) };
            // h_t is an output, and the input of the next step.
            for (dh, output) in dh.iter_mut().zip(&step.d_outputs[of(token, d)]) {
                *dh += output;
            }
            backward_row(
                cell,
                BackwardRow {
                    saved: &step.saved_gates[of(token, cell.saved_values() * d)],
                    h_previous: step.before.state(row, d, step.initial_h, step.outputs),
                    h: &step.outputs[of(token, d)],
                    c_previous: step.before.state(row, d_c, step.initial_c, step.saved_c),
                    c: &step.saved_c[of(token, d_c)],
                    dh,
                    dc,
                    dx: &mut *dx,
                    da: left,
                },
            );
            if let Some(left) = &step.left_input {
                // SAFETY: as above.
                unsafe { left.slice(of(row, gates)) }.copy_from_slice(dx);
            }
            if let Some(da) = step.da {
                // SAFETY: as above.
                unsafe { da.slice(of(token, gates)) }.copy_from_slice(left);
            }
        }
    }
}
