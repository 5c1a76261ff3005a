//! Sums over columns in chunks of rows, then every element on its own.

use std::sync::Arc;

use super::Forward;
use crate::array::Write;
use crate::array::cuda::{Sums, join};
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
    let (partial, blocks, [count, columns, part]) = parts(x, 1);
    let function = MODULE.function("batch_sums");
    launch!(function, blocks, x.pointer(), partial.pointer(), count, columns, part);
    join(&[whole(Arc::new(partial), 0, &sums)]);
    let (partial, blocks, [count, columns, part]) = parts(x, 1);
    let (function, from) = (MODULE.function("batch_squares"), x.pointer());
    launch!(function, blocks, from, sums.pointer(), partial.pointer(), count, columns, part, share);
    join(&[whole(Arc::new(partial), 0, &squares)]);

    let (mean, variance, inverse_deviation) = (scratch(1), scratch(1), scratch(1));
    let function = MODULE.function("batch_statistics");
    launch!(
        function,
        Blocks::for_each(width),
        sums.pointer(),
        squares.pointer(),
        mean.pointer(),
        variance.pointer(),
        inverse_deviation.pointer(),
        columns,
        share,
        epsilon
    );
    let (standard, y) = (scratch(rows), scratch(rows));
    let [gamma, beta] = [gamma, beta].map(pointer);
    let function = MODULE.function("batch_normalize");
    launch!(
        function,
        Blocks::for_each(x.len()),
        x.pointer(),
        mean.pointer(),
        inverse_deviation.pointer(),
        gamma,
        beta,
        standard.pointer(),
        y.pointer(),
        columns,
        n
    );
    Forward { y, standard, inverse_deviation, mean, variance }
}

/// `dx`; the gradients of γ and β go to their places.
pub(super) fn backward(
    standard: &Array,
    inverse_deviation: &Array,
    mut g: Array,
    gamma: &Param,
    beta: &Param,
) -> Array {
    g.forget_sums();
    let (rows, width, n) = (g.rows(), g.width(), g.len() as u64);
    let (partial, blocks, [count, columns, part]) = parts(&g, 2);
    let function = MODULE.function("batch_products");
    launch!(function, blocks, g.pointer(), standard.pointer(), partial.pointer(), count, columns, part);
    let [d_gamma, d_beta] = [0, 1].map(|_| Array::scratch_on(Device::Cuda, DType::F32, 1, width));
    let partial = Arc::new(partial);
    join(&[whole(partial.clone(), 0, &d_gamma), whole(partial.clone(), width, &d_beta)]);
    gamma.gradient_slot().sum_later(partial.clone(), 0);
    beta.gradient_slot().sum_later(partial, width);
    let function = MODULE.function("batch_slopes");
    launch!(
        function,
        Blocks::for_each(g.len()),
        g.pointer(),
        standard.pointer(),
        d_gamma.pointer(),
        d_beta.pointer(),
        pointer(gamma),
        inverse_deviation.pointer(),
        columns,
        1.0 / rows as f32,
        n
    );
    g
}

/// With given statistics.
pub(super) fn by(
    x: &Array,
    [mean, variance]: [&Param; 2],
    [gamma, beta]: [&Param; 2],
    epsilon: f32,
) -> Array {
    let y = Array::scratch_on(Device::Cuda, DType::F32, x.rows(), x.width());
    let [mean, variance, gamma, beta] = [mean, variance, gamma, beta].map(pointer);
    let (function, blocks) = (MODULE.function("batch_norm_by"), Blocks::for_each(x.len()));
    let (width, n) = (x.width() as u32, x.len() as u64);
    launch!(function, blocks, x.pointer(), mean, variance, gamma, beta, y.pointer(), width, epsilon, n);
    y
}

/// `running += share (batch − running)`, unless the word at `is_refused` is set.
pub(super) fn follow(running: &Param, batch: &Array, share: f32, is_refused: Pointer) {
    let (function, n) = (MODULE.function("batch_follow"), batch.len());
    launch!(function, Blocks::for_each(n), pointer(running), batch.pointer(), is_refused, share, n as u32);
}

fn pointer(param: &Param) -> Pointer {
    param.operand(DType::F32).pointer
}

/// Room for partial sums of so many kinds over the rows, the launch that makes them, and its sizes.
fn parts(x: &Array, kinds: usize) -> (Array, Blocks, [u32; 3]) {
    let (rows, width) = (x.rows(), x.width());
    let parts = rows.div_ceil(ROWS);
    let partial = Array::scratch_on(Device::Cuda, DType::F32, parts, kinds * width);
    let blocks = Blocks { grid: [width.div_ceil(32), parts, 1], threads: 256, shared: 0 };
    (partial, blocks, [rows, width, ROWS].map(|size| size as u32))
}

/// All of the partial sums from a column on, joined.
fn whole(partial: Arc<Array>, column: usize, sums: &Array) -> Sums {
    Sums { partial, column, width: sums.width(), out: sums.pointer(), write: Write::Over }
}
