//! Some rows for each task: a row stays in the L1 cache during its passes.

mod rows;

use std::ops::Range;

use super::{Forward, Inputs, Keep, NormOptions, SavedForBackward};
use crate::cpu::number::{Numbers, SharedNumbers};
use crate::cpu::threads::{SharedMut, parallel};
use crate::random::Dropout;
use crate::{Array, DType, Param, Tensor};

/// Rows of one task, and of one partial sum of dγ and dβ.
const ROWS: usize = 64;
/// Rows of one task of the forward pass: a decoding step has only few rows.
const FORWARD_ROWS: usize = 8;

/// `x + dropout(sublayer)`.
pub(super) fn residual(x: &Array, sublayer: &Array, dropout: Dropout) -> Array {
    let mut y = Array::scratch(DType::F32, x.rows(), x.width());
    let (from, added, to) = (x.f32(), Numbers::of(sublayer), SharedMut::new(y.f32_mut()));
    parallel(x.rows().div_ceil(ROWS), |task| {
        let range = elements(task, x.rows(), x.width());
        // SAFETY: tasks have disjoint rows.
        let to = unsafe { to.slice(range.clone()) };
        rows::add_dropped(&from[range.clone()], added.part(range.clone()), dropout, range.start, to);
    });
    y
}

/// `g · dropout factor` in `dtype`.
pub(super) fn dropped(g: &Array, dropout: Dropout, dtype: DType) -> Array {
    let mut out = Array::scratch(dtype, g.rows(), g.width());
    let (from, to) = (g.f32(), SharedNumbers::of(&mut out));
    parallel(g.rows().div_ceil(ROWS), |task| {
        let range = elements(task, g.rows(), g.width());
        // SAFETY: tasks have disjoint rows.
        let to = unsafe { to.slice(range.clone()) };
        rows::dropped(&from[range.clone()], dropout, range.start, to);
    });
    out
}

/// `y = γ x̂ + β` for `z = x + dropout(sublayer)`.
pub(super) fn forward(inputs: &Inputs<'_>, options: NormOptions, keep: Keep) -> Forward {
    let &Inputs { x, sublayer, dropout, gamma, beta } = inputs;
    let (dtype, [rows, width]) = (options.compute.dtype(), x.shape());
    let mut y = Array::scratch(DType::F32, rows, width);
    let mut narrow = (dtype == DType::Bf16).then(|| Array::scratch(DType::Bf16, rows, width));
    let mut x_hat = (keep == Keep::ForBackward).then(|| Array::scratch(dtype, rows, width));
    let mut rstd = Array::scratch(DType::F32, rows, 1);
    let job = rows::Forward {
        width,
        x: x.array().f32(),
        sublayer: sublayer.map(Tensor::array).map(Numbers::of),
        dropout,
        gamma: &gamma.values(),
        beta: &beta.values(),
        epsilon: options.epsilon,
        y: SharedMut::new(y.f32_mut()),
        narrow: narrow.as_mut().map(|narrow| SharedMut::new(narrow.bf16_mut())),
        x_hat: x_hat.as_mut().map(SharedNumbers::of),
        rstd: SharedMut::new(rstd.f32_mut()),
    };
    parallel(rows.div_ceil(FORWARD_ROWS), |task| {
        let rows = task * FORWARD_ROWS..((task + 1) * FORWARD_ROWS).min(rows);
        rows::forward(&job, rows);
    });
    Forward { y, narrow, x_hat, rstd }
}

/// `y = γ x̂ + β` with the bits of the forward pass.
pub(super) fn scaled(x_hat: &Array, gamma: &Param, beta: &Param) -> Array {
    let (rows, width) = (x_hat.rows(), x_hat.width());
    let mut y = Array::scratch(DType::F32, rows, width);
    let (from, gamma, beta, to) = (x_hat.f32(), gamma.values(), beta.values(), SharedMut::new(y.f32_mut()));
    parallel(rows.div_ceil(ROWS), |task| {
        let range = elements(task, rows, width);
        // SAFETY: tasks have disjoint rows.
        rows::scale(&from[range.clone()], &gamma, &beta, unsafe { to.slice(range) });
    });
    y
}

/// Adds the gradients of γ and β to their slots; returns the gradient of x, in the memory of `g`, and that of
/// the sublayer in its type, if requested.
pub(super) fn backward(
    saved: &SavedForBackward,
    mut g: Array,
    sublayer: Option<DType>,
    gamma: &Param,
    beta: &Param,
) -> (Array, Option<Array>) {
    let (rows, width) = (g.rows(), g.width());
    let mut d_sublayer = sublayer.map(|dtype| Array::scratch(dtype, rows, width));
    let chunks = rows.div_ceil(ROWS);
    let mut partial = Array::scratch(DType::F32, chunks, 2 * width);
    let job = rows::Backward {
        width,
        x_hat: Numbers::of(&saved.x_hat),
        rstd: saved.rstd.f32(),
        dropout: saved.dropout,
        gamma: &gamma.values(),
        gradient: SharedMut::new(g.f32_mut()),
        d_sublayer: d_sublayer.as_mut().map(SharedNumbers::of),
    };
    let sums = SharedMut::new(partial.f32_mut());
    parallel(chunks, |task| {
        // SAFETY: each task has its own row of partial sums.
        let sums = unsafe { sums.slice(task * 2 * width..(task + 1) * 2 * width) };
        let (d_gamma, d_beta) = sums.split_at_mut(width);
        let rows = task * ROWS..((task + 1) * ROWS).min(rows);
        rows::backward(&job, rows, d_gamma, d_beta);
    });
    // y = γ x̂ + β
    rows::add_partials(partial.f32(), 2 * width, 0, gamma.gradient_slot().accumulate());
    rows::add_partials(partial.f32(), 2 * width, width, beta.gradient_slot().accumulate());
    (g, d_sublayer)
}

/// The elements of a task's rows.
fn elements(task: usize, rows: usize, width: usize) -> Range<usize> {
    task * ROWS * width..((task + 1) * ROWS).min(rows) * width
}
