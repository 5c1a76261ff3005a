//! Chunks of rows: logits, losses and gradients share one buffer; the GEMMs around them.

pub(super) mod pairs;

use std::sync::Arc;

use bytemuck::NoUninit;

use super::{Forward, Keep, MeanGradients, Projection, Target, Totals};
use crate::array::Write;
use crate::array::cuda::{PartialSums, reduce_partial_sums};
use crate::cuda::{Blocks, Epilogue, Module, Operand, Pointer, Product, multiply, upload};
use crate::ops::elementwise::cuda::copy;
use crate::ops::linear::cuda::column_sums_of;
use crate::{Array, DType, Device, Param, Tensor};

pub(crate) static MODULE: Module =
    Module::new("cross_entropy", concat!(include_str!("cuda.cu"), include_str!("cuda/pairs.cu")));

/// Rows of logits at a time: enough to fill the GPU.
const ROWS: usize = 4096;

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct Losses {
    logits: Pointer,
    labels: Pointer,
    by_token: Pointer,
    counted: Pointer,
    first: u32,
    rows: u32,
    classes: u32,
    tokens: u32,
    q_label: f32,
    q_other: f32,
    keep: u32,
    unused: u32,
}

/// A copy of one row of an f32 array as a column.
pub(super) fn row_as_column(array: &Array, row: usize) -> Array {
    let width = array.width();
    let mut column = Array::scratch_on(Device::Cuda, DType::F32, 1, width);
    copy(array, [row, 0], &mut column, [0, 0], [1, width]);
    column.reshaped(width, 1)
}

/// Losses of all tokens and, with [`Keep::Gradients`], the gradients of their mean.
pub(super) fn forward(
    x: &Tensor,
    projection: Projection<'_>,
    labels: &[u32],
    target: Target,
    dtype: DType,
    keep: Keep,
) -> Forward {
    let Target { classes, tokens, counted, smoothing, .. } = target;
    let counted = upload(&[counted as u32]);
    let scratch = |dtype, rows, width| Array::scratch_on(Device::Cuda, dtype, rows, width);
    let gradients = (keep == Keep::Gradients).then(|| scratch_gradients(x, projection));
    let (labels, x) = (upload(labels), x.array_as(dtype).operand());
    let (weight, epilogue) = operands(projection, dtype);
    let by_token = scratch(DType::F32, 3, tokens);
    let logits = scratch(dtype, ROWS.min(tokens), classes);
    for first in (0..tokens).step_by(ROWS) {
        let rows = ROWS.min(tokens - first);
        let (x, slopes) = (rows_of(x, first, rows), rows_of(logits.operand(), 0, rows));
        let plain = |left, right, out, add| Product { left, right, out, add, epilogue: Epilogue::None };
        multiply(&Product { epilogue, ..plain(x, weight.transposed(), slopes, false) });
        let args = Losses {
            logits: logits.pointer(),
            labels: labels.pointer(),
            by_token: by_token.pointer(),
            counted: counted.pointer(),
            first: first as u32,
            rows: rows as u32,
            classes: classes as u32,
            tokens: tokens as u32,
            q_label: 1.0 - smoothing,
            q_other: if smoothing == 0.0 { 0.0 } else { smoothing / (classes - 1) as f32 },
            keep: u32::from(keep == Keep::Gradients),
            unused: 0,
        };
        launch!(MODULE.function(format!("losses_{dtype}")), Blocks::of(rows, 256), args);
        if let Some(MeanGradients { dx, dw, db }) = &gradients {
            // dx = dz W,   dW = dzᵀ x,   db = Σ dz
            multiply(&plain(slopes, weight, rows_of(dx.operand(), first, rows), false));
            multiply(&plain(slopes.transposed(), x, dw.operand(), first > 0));
            db.iter().for_each(|db| add_bias_gradient(slopes, db, first == 0));
        }
    }
    let (loss, totals) = totals_of(&by_token, counted.pointer());
    Forward { by_token, loss, totals, gradients }
}

/// The weight matrix, and the GEMM's epilogue.
fn operands(Projection { weight, bias }: Projection<'_>, dtype: DType) -> (Operand, Epilogue) {
    let bias = bias.map(|bias| bias.operand(dtype).pointer);
    (weight.operand(dtype), bias.map_or(Epilogue::None, Epilogue::Bias))
}

fn scratch_gradients(x: &Tensor, Projection { weight, bias }: Projection<'_>) -> MeanGradients {
    let scratch = |dtype, rows, width| Array::scratch_on(Device::Cuda, dtype, rows, width);
    let [classes, width] = weight.shape();
    MeanGradients {
        dx: scratch(x.dtype(), x.rows(), width),
        dw: scratch(DType::F32, classes, width),
        db: bias.map(|_| scratch(DType::F32, 1, classes)),
    }
}

/// `db += Σ dz` over the rows of a chunk; the first chunk overwrites `db`.
fn add_bias_gradient(slopes: Operand, db: &Array, is_first: bool) {
    let (partial, width, out) = (Arc::new(column_sums_of(slopes)), db.width(), db.pointer());
    let write = if is_first { Write::Over } else { Write::Add };
    reduce_partial_sums(&[PartialSums { partial, column: 0, width, out, write }]);
}

/// The mean loss of the tokens that are not ignored (`counted` points to their number), and the sums of the
/// three rows.
fn totals_of(by_token: &Array, counted: Pointer) -> (Array, Totals) {
    let scratch = |rows, width| Array::scratch_on(Device::Cuda, DType::F32, rows, width);
    // Three f64 totals.
    let totals = scratch(3, 2);
    let loss = scratch(1, 1);
    let (function, blocks, n) = (MODULE.function("totals"), Blocks::of(3, 1024), by_token.width() as u32);
    let (sums, mean) = (totals.pointer(), loss.pointer());
    launch!(function, blocks, by_token.pointer(), sums, mean, counted, n);
    (loss, Totals::OnGpu(totals))
}

/// Waits for the totals.
pub(super) fn read_totals(totals: &Array) -> [f64; 3] {
    let halves: Vec<u32> = totals.to_vec().into_iter().map(f32::to_bits).collect();
    [0, 1, 2].map(|i| f64::from_bits(u64::from(halves[2 * i]) | u64::from(halves[2 * i + 1]) << 32))
}

/// Some rows of a matrix.
fn rows_of(matrix: Operand, first: usize, rows: usize) -> Operand {
    let pointer = matrix.pointer.offset(first * matrix.stride * matrix.dtype.bytes());
    Operand { pointer, rows, ..matrix }
}

/// `array *= factor`.
pub(super) fn scale(array: &mut Array, factor: &Array) {
    let function = format!("scale_{}", array.dtype());
    let (blocks, n) = (array.len().div_ceil(256).min(1024), array.len());
    let (function, blocks) = (MODULE.function(function), Blocks::of(blocks, 256));
    launch!(function, blocks, array.pointer(), factor.pointer(), n as u64);
}

/// `factor · from` into the gradient of `weight`.
pub(super) fn add_scaled(weight: &Param, from: &Array, factor: &Array) {
    let mut slot = weight.gradient_slot();
    let (out, write) = slot.on_gpu();
    let add = u32::from(write == Write::Add);
    let (function, n) = (MODULE.function("add_scaled"), from.len());
    let blocks = Blocks::for_each(n.div_ceil(4));
    launch!(function, blocks, out, from.pointer(), factor.pointer(), add, n as u64);
}
