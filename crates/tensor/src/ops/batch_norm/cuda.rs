//! Column sums in chunks of rows, then elementwise work.

use std::sync::Arc;

use super::Forward;
use crate::array::Write;
use crate::array::cuda::{PartialSums, reduce_partial_sums};
use crate::cuda::{Blocks, Module, Pointer};
use crate::{Array, DType, Device, Param};

pub(crate) static MODULE: Module = Module::new("batch_norm", include_str!("cuda.cu"));

/// Rows of one partial sum.
const ROWS: usize = 128;

pub(super) fn forward(x: &Array, gamma: &Param, beta: &Param, epsilon: f32) -> Forward {
    let (rows, width, n) = (x.rows(), x.width(), x.len() as u64);
    let share = 1.0 / rows as f32;
    let scratch = |rows| Array::scratch_on(Device::Cuda, DType::F32, rows, width);
    let (sums, squares) = (scratch(1), scratch(1));
    let (partial, blocks, [count, columns, part]) = partial_sums(x, 1);
    let function = MODULE.function("batch_sums");
    launch!(function, blocks, x.pointer(), partial.pointer(), count, columns, part);
    reduce_partial_sums(&[reduction(Arc::new(partial), 0, &sums)]);
    let (partial, blocks, [count, columns, part]) = partial_sums(x, 1);
    let (function, from) = (MODULE.function("batch_squares"), x.pointer());
    launch!(function, blocks, from, sums.pointer(), partial.pointer(), count, columns, part, share);
    reduce_partial_sums(&[reduction(Arc::new(partial), 0, &squares)]);

    let (mean, variance, rstd) = (scratch(1), scratch(1), scratch(1));
    let function = MODULE.function("batch_statistics");
    launch!(
        function,
        Blocks::for_each(width),
        sums.pointer(),
        squares.pointer(),
        mean.pointer(),
        variance.pointer(),
        rstd.pointer(),
        columns,
        share,
        epsilon
    );
    let (x_hat, y) = (scratch(rows), scratch(rows));
    let [gamma, beta] = [gamma, beta].map(pointer);
    let function = MODULE.function("batch_normalize");
    launch!(
        function,
        Blocks::for_each(x.len()),
        x.pointer(),
        mean.pointer(),
        rstd.pointer(),
        gamma,
        beta,
        x_hat.pointer(),
        y.pointer(),
        columns,
        n
    );
    Forward { y, x_hat, rstd, mean, variance }
}

/// Returns `dx`; adds the gradients of γ and β to their slots.
pub(super) fn backward(x_hat: &Array, rstd: &Array, mut g: Array, gamma: &Param, beta: &Param) -> Array {
    g.clear_partial_column_sums();
    let (rows, width, n) = (g.rows(), g.width(), g.len() as u64);
    let (partial, blocks, [count, columns, part]) = partial_sums(&g, 2);
    let function = MODULE.function("batch_products");
    launch!(function, blocks, g.pointer(), x_hat.pointer(), partial.pointer(), count, columns, part);
    let [d_gamma, d_beta] = [0, 1].map(|_| Array::scratch_on(Device::Cuda, DType::F32, 1, width));
    let partial = Arc::new(partial);
    reduce_partial_sums(&[
        reduction(partial.clone(), 0, &d_gamma),
        reduction(partial.clone(), width, &d_beta),
    ]);
    gamma.gradient_slot().defer_column_sum(partial.clone(), 0);
    beta.gradient_slot().defer_column_sum(partial, width);
    let function = MODULE.function("batch_slopes");
    launch!(
        function,
        Blocks::for_each(g.len()),
        g.pointer(),
        x_hat.pointer(),
        d_gamma.pointer(),
        d_beta.pointer(),
        pointer(gamma),
        rstd.pointer(),
        columns,
        1.0 / rows as f32,
        n
    );
    g
}

/// With given statistics.
pub(super) fn with_statistics(
    x: &Array,
    [mean, variance]: [&Param; 2],
    [gamma, beta]: [&Param; 2],
    epsilon: f32,
) -> Array {
    let y = Array::scratch_on(Device::Cuda, DType::F32, x.rows(), x.width());
    let [mean, variance, gamma, beta] = [mean, variance, gamma, beta].map(pointer);
    let (function, blocks) = (MODULE.function("batch_norm_with_statistics"), Blocks::for_each(x.len()));
    let (width, n) = (x.width() as u32, x.len() as u64);
    launch!(function, blocks, x.pointer(), mean, variance, gamma, beta, y.pointer(), width, epsilon, n);
    y
}

/// `running += share (batch − running)`, unless the word at `is_rejected` is set.
pub(super) fn update_running(running: &Param, batch: &Array, share: f32, is_rejected: Pointer) {
    let (function, n) = (MODULE.function("batch_update_running"), batch.len());
    launch!(function, Blocks::for_each(n), pointer(running), batch.pointer(), is_rejected, share, n as u32);
}

fn pointer(param: &Param) -> Pointer {
    param.operand(DType::F32).pointer
}

/// A buffer for `kinds` partial sums of each column, the launch that computes them, and its sizes.
fn partial_sums(x: &Array, kinds: usize) -> (Array, Blocks, [u32; 3]) {
    let (rows, width) = (x.rows(), x.width());
    let parts = rows.div_ceil(ROWS);
    let partial = Array::scratch_on(Device::Cuda, DType::F32, parts, kinds * width);
    let blocks = Blocks { grid: [width.div_ceil(32), parts, 1], threads: 256, shared: 0 };
    (partial, blocks, [rows, width, ROWS].map(|size| size as u32))
}

/// The reduction of the partial sums from a column on.
fn reduction(partial: Arc<Array>, column: usize, sums: &Array) -> PartialSums {
    PartialSums { partial, column, width: sums.width(), out: sums.pointer(), write: Write::Over }
}
