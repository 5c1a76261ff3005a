//! Steps forward: one small product for all active rows, then the gates of each row while they are in the
//! cache.

use std::ops::Range;

use half::bf16;

use super::cell::{ForwardRow, forward_row};
use crate::cpu::gemm::{Finish, Matrix, Output, multiply};
use crate::cpu::number::{self, Element, Number};
use crate::cpu::threads::{SharedMut, parallel};
use crate::ops::recurrent::{Cell, Forward, Layer, Save, SavedActivations};
use crate::params::Orientation;
use crate::{Array, Compute, DType, Param};

/// The whole layer, in the compute type `T`.
pub(super) fn forward<T: Element>(layer: &Layer, x: &Array, states: [Array; 2], save: Save) -> Forward {
    let Layer { cell, schedule, weight, bias, .. } = layer;
    let cell = *cell;
    let [mut h, mut c] = states;
    let (weight, bias) =
        (weight.packed(Orientation::AsIs, Compute::inference(T::DTYPE)), bias.as_ref().map(Param::values));
    let bias = bias.as_deref();
    let (tokens, sequences, d) = (x.rows(), h.rows(), h.width());
    let gates = cell.gates() * d;
    let mut outputs = Array::scratch(DType::F32, tokens, d);
    let mut narrow = (T::DTYPE == DType::Bf16).then(|| Array::scratch(DType::Bf16, tokens, d));
    let mut activations = (save == Save::Activations).then(|| SavedActivations {
        gates: Array::scratch(T::DTYPE, tokens, cell.saved_values() * d),
        c: Array::scratch(DType::F32, tokens, c.width()),
    });
    // The left factor of the next step's product.
    let mut left = h.to(T::DTYPE);
    let mut sums = Array::scratch(DType::F32, sequences, gates);
    let record = Record {
        outputs: SharedMut::new(outputs.f32_mut()),
        narrow: narrow.as_mut().map(|narrow| SharedMut::new(narrow.bf16_mut())),
        c: activations.as_mut().map(|saved| SharedMut::new(saved.c.f32_mut())),
    };
    let saved_gates = activations.as_mut().map(|saved| SharedMut::new(T::of_mut(&mut saved.gates)));
    for step in 0..schedule.steps() {
        let tokens = schedule.tokens(step);
        let rows = tokens.len();
        let product = Output::F32(&mut sums.f32_mut()[..rows * gates]);
        multiply(Matrix::of(&left).rows(0..rows), &weight, product, Finish { bias, ..Finish::NONE });
        let step = ForwardStep {
            cell,
            d,
            tokens: Some(tokens),
            x: T::of(x),
            input_side: None,
            a: sums.f32(),
            h: SharedMut::new(h.f32_mut()),
            c: SharedMut::new(c.f32_mut()),
            left: Some(SharedMut::new(T::of_mut(&mut left))),
            saved: saved_gates.as_ref(),
            record: Some(&record),
        };
        step.run(rows);
    }
    Forward { outputs, narrow, h, c, activations }
}

/// One step of independent rows, for decoding: updates `h` and `c`.
pub(super) fn single_step<T: Element>(
    cell: Cell,
    x: &Array,
    (weight, bias): (&Param, Option<&Param>),
    [h, c]: [&mut Array; 2],
) {
    let (rows, d) = (h.rows(), h.width());
    let mut sums = Array::scratch(DType::F32, rows, cell.gates() * d);
    let packed = weight.packed(Orientation::AsIs, Compute::inference(T::DTYPE));
    let bias = bias.map(Param::values);
    let finish = Finish { bias: bias.as_deref(), ..Finish::NONE };
    multiply(Matrix::of(h), &packed, Output::over(&mut sums), finish);
    let step = ForwardStep::<T> {
        cell,
        d,
        tokens: None,
        x: T::of(x),
        input_side: None,
        a: sums.f32(),
        h: SharedMut::new(h.f32_mut()),
        c: SharedMut::new(c.f32_mut()),
        left: None,
        saved: None,
        record: None,
    };
    step.run(rows);
}

/// One step: row `r` of the states reads and writes row `tokens[r]` of arrays indexed by token.
pub(crate) struct ForwardStep<'a, T> {
    pub(crate) cell: Cell,
    pub(crate) d: usize,
    /// `None`: row `r` is token `r`.
    pub(crate) tokens: Option<&'a [usize]>,
    /// By token.
    pub(crate) x: &'a [T],
    /// By row: an addend of x, if any; overwritten by the sum.
    pub(crate) input_side: Option<SharedMut<f32>>,
    /// By row.
    pub(crate) a: &'a [f32],
    /// By row.
    pub(crate) h: SharedMut<f32>,
    /// By row.
    pub(crate) c: SharedMut<f32>,
    /// By row: `h_t` in the compute type.
    pub(crate) left: Option<SharedMut<T>>,
    /// By token.
    pub(crate) saved: Option<&'a SharedMut<T>>,
    pub(crate) record: Option<&'a Record>,
}

/// States of all steps, indexed by token.
pub(crate) struct Record {
    pub(crate) outputs: SharedMut<f32>,
    pub(crate) narrow: Option<SharedMut<bf16>>,
    pub(crate) c: Option<SharedMut<f32>>,
}

/// Gate values of one task: few enough that threads finish together, many enough to be worth a task.
pub(super) const TASK: usize = 8192;

impl<T: Element> ForwardStep<'_, T> {
    pub(crate) fn run(&self, rows: usize) {
        let rows_per_task = (TASK / (self.cell.gates() * self.d).max(1)).max(1);
        parallel(rows.div_ceil(rows_per_task), |task| {
            forward_rows(self, task * rows_per_task..((task + 1) * rows_per_task).min(rows));
        });
    }
}

kernel! {
    fn forward_rows<T: Number>(step: &ForwardStep<'_, T>, rows: Range<usize>) {
        let (cell, d) = (step.cell, step.d);
        let gates = cell.gates() * d;
        // Without memory, the states c have width 0.
        let d_c = if cell.has_memory() { d } else { 0 };
        for row in rows {
            let token = step.tokens.map_or(row, |tokens| tokens[row]);
            let of = |index: usize, width: usize| index * width..(index + 1) * width;
            // SAFETY: every row of a step belongs to one task, and every token to one row; here and below.
            let (h, c) = unsafe { (step.h.slice(of(row, d)), step.c.slice(of(row, d_c))) };
            let (x, a) = (&step.x[of(token, gates)], &step.a[of(row, gates)]);
            // SAFETY: as above.
            let saved = step.saved.map(|saved| unsafe { saved.slice(of(token, cell.saved_values() * d)) });
            match &step.input_side {
                None => forward_row(cell, ForwardRow { x, a, h: &mut *h, c: &mut *c, saved }),
                Some(input_side) => {
                    // SAFETY: as above.
                    let sums = unsafe { input_side.slice(of(row, gates)) };
                    for (sum, x) in sums.iter_mut().zip(x) {
                        *sum += x.wide();
                    }
                    forward_row(cell, ForwardRow { x: &*sums, a, h: &mut *h, c: &mut *c, saved });
                }
            }
            if let Some(left) = &step.left {
                // SAFETY: as above.
                number::copy(h, unsafe { left.slice(of(row, d)) });
            }
            if let Some(record) = step.record {
                // SAFETY: as above.
                number::copy(h, unsafe { record.outputs.slice(of(token, d)) });
                if let Some(narrow) = &record.narrow {
                    // SAFETY: as above.
                    number::copy(h, unsafe { narrow.slice(of(token, d)) });
                }
                if let Some(memory) = &record.c {
                    // SAFETY: as above.
                    number::copy(c, unsafe { memory.slice(of(token, d_c)) });
                }
            }
        }
    }
}
