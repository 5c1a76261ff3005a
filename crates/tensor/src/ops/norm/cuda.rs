//! One warp for each row, which stays in registers during its reductions; one block for rows that are too
//! wide for that.

use std::sync::Arc;

use bytemuck::NoUninit;

use super::{Forward, Inputs, Keep, NormOptions, SavedForBackward};
use crate::cuda::{Blocks, DropoutArgument, Gpu, Module, Pointer, gpu};
use crate::random::Dropout;
use crate::{Array, DType, Device, Param, Tensor};

pub(crate) static MODULE: Module =
    Module::with_pdl("norm", concat!(include_str!("cuda.cu"), include_str!("wide.cu")));

/// The largest width of a row that fits in the registers of a warp.
const MAX_WARP_WIDTH: usize = 1024;

/// Teams of warps in a block of the backward kernel: each team processes one row at a time, with up to 256
/// columns for each warp.
fn teams(width: usize) -> usize {
    match width {
        0..=256 => 8,
        257..=512 => 4,
        _ => 2,
    }
}

/// Rows of one partial sum of dγ and dβ: so many that all blocks are resident at once (a single wave).
fn rows_of_partial_sum(rows: usize, width: usize, dtype: DType) -> usize {
    let resident = if dtype == DType::Bf16 && width > 256 { 3 } else { 2 };
    let blocks = resident * gpu().map_or(1, Gpu::multiprocessors);
    rows.div_ceil(blocks).next_multiple_of(teams(width))
}

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct NormForward {
    x: Pointer,
    sublayer: Pointer,
    gamma: Pointer,
    beta: Pointer,
    y: Pointer,
    narrow: Pointer,
    x_hat: Pointer,
    rstd: Pointer,
    dropout: Pointer,
    rows: u32,
    width: u32,
    epsilon: f32,
    unused: u32,
}

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct NormBackward {
    x_hat: Pointer,
    rstd: Pointer,
    gamma: Pointer,
    gradient: Pointer,
    d_sublayer: Pointer,
    partial: Pointer,
    dropout: Pointer,
    rows: u32,
    width: u32,
    part: u32,
    unused: u32,
}

/// `x + dropout(sublayer)`.
pub(super) fn residual(x: &Array, sublayer: &Array, dropout: Dropout) -> Array {
    let y = Array::scratch_on(Device::Cuda, DType::F32, x.rows(), x.width());
    let function = format!("residual_{}", sublayer.dtype());
    let (function, blocks, n) = (MODULE.function(function), Blocks::for_each(x.len()), x.len() as u64);
    let dropout = DropoutArgument::of(dropout);
    launch!(function, blocks, x.pointer(), sublayer.pointer(), y.pointer(), dropout.pointer(), n);
    y
}

/// `g · dropout factor` in `dtype`.
pub(super) fn dropped(g: &Array, dropout: Dropout, dtype: DType) -> Array {
    let out = Array::scratch_on(Device::Cuda, dtype, g.rows(), g.width());
    let function = format!("dropped_{dtype}");
    let (function, blocks, n) = (MODULE.function(function), Blocks::for_each(g.len()), g.len() as u64);
    let dropout = DropoutArgument::of(dropout);
    launch!(function, blocks, g.pointer(), out.pointer(), dropout.pointer(), n);
    out
}

/// `y = γ x̂ + β` for `z = x + dropout(sublayer)`.
pub(super) fn forward(inputs: &Inputs<'_>, options: NormOptions, keep: Keep) -> Forward {
    let &Inputs { x, sublayer, dropout, gamma, beta } = inputs;
    let (dtype, [rows, width]) = (options.compute.dtype(), x.shape());
    let scratch = |dtype, width| Array::scratch_on(Device::Cuda, dtype, rows, width);
    let y = scratch(DType::F32, width);
    let narrow = (dtype == DType::Bf16).then(|| scratch(DType::Bf16, width));
    let x_hat = (keep == Keep::ForBackward).then(|| scratch(dtype, width));
    let rstd = scratch(DType::F32, 1);
    let pointer = |array: Option<&Array>| array.map_or(Pointer::NULL, Array::pointer);
    let dropout = DropoutArgument::of(dropout);
    let args = NormForward {
        x: x.array().pointer(),
        sublayer: pointer(sublayer.map(Tensor::array)),
        gamma: gamma.operand(DType::F32).pointer,
        beta: beta.operand(DType::F32).pointer,
        y: y.pointer(),
        narrow: pointer(narrow.as_ref()),
        x_hat: pointer(x_hat.as_ref()),
        rstd: rstd.pointer(),
        dropout: dropout.pointer(),
        rows: rows as u32,
        width: width as u32,
        epsilon: options.epsilon,
        unused: 0,
    };
    let types = (sublayer.map_or(dtype, Tensor::dtype), dtype);
    let blocks =
        if width > MAX_WARP_WIDTH { Blocks::of(rows, 256) } else { Blocks::of(rows.div_ceil(4), 128) };
    launch!(MODULE.function(kernel("forward", types, width)), blocks, args);
    Forward { y, narrow, x_hat, rstd }
}

/// `y = γ x̂ + β` with the bits of the forward pass.
pub(super) fn scaled(x_hat: &Array, gamma: &Param, beta: &Param) -> Array {
    let (rows, width, n) = (x_hat.rows(), x_hat.width(), x_hat.len());
    let y = Array::scratch_on(Device::Cuda, DType::F32, rows, width);
    let [gamma, beta] = [gamma, beta].map(|param| param.operand(DType::F32).pointer);
    let function = MODULE.function("scaled");
    let blocks = Blocks::for_each(n);
    launch!(function, blocks, x_hat.pointer(), gamma, beta, y.pointer(), width as u32, n as u64);
    y
}

/// Adds the gradients of γ and β to their slots; returns the gradient of x, in the memory of `g`, and that of
/// the sublayer in its type, if requested.
pub(super) fn backward(
    saved: &SavedForBackward,
    g: Array,
    sublayer: Option<DType>,
    gamma: &Param,
    beta: &Param,
) -> (Array, Option<Array>) {
    let (rows, width) = (g.rows(), g.width());
    let d_sublayer = sublayer.map(|dtype| Array::scratch_on(Device::Cuda, dtype, rows, width));
    let part = rows_of_partial_sum(rows, width, saved.x_hat.dtype());
    let parts = rows.div_ceil(part);
    let partial = Array::scratch_on(Device::Cuda, DType::F32, parts, 3 * width);
    let dropout = DropoutArgument::of(saved.dropout);
    let args = NormBackward {
        x_hat: saved.x_hat.pointer(),
        rstd: saved.rstd.pointer(),
        gamma: gamma.operand(DType::F32).pointer,
        gradient: g.pointer(),
        d_sublayer: d_sublayer.as_ref().map_or(Pointer::NULL, Array::pointer),
        partial: partial.pointer(),
        dropout: dropout.pointer(),
        rows: rows as u32,
        width: width as u32,
        part: part as u32,
        unused: 0,
    };
    let dtype = saved.x_hat.dtype();
    // Every second team writes three rows of sums.
    let shared = if width > MAX_WARP_WIDTH { 0 } else { teams(width) / 2 * 3 * 4 * width };
    let blocks = Blocks { grid: [parts, 1, 1], threads: 256, shared };
    launch!(MODULE.function(kernel("backward", (sublayer.unwrap_or(dtype), dtype), width)), blocks, args);
    // y = γ x̂ + β
    let partial = Arc::new(partial);
    gamma.gradient_slot().defer_column_sum(partial.clone(), 0);
    beta.gradient_slot().defer_column_sum(partial.clone(), width);
    let d_sublayer = d_sublayer.map(|mut d_sublayer| {
        d_sublayer.set_partial_column_sums(partial, 2 * width);
        d_sublayer
    });
    (g, d_sublayer)
}

/// The kernel's name: the sublayer's type, the compute type, and the columns of a warp in units of 128, or
/// `wide`.
fn kernel(pass: &str, (sublayer, compute): (DType, DType), width: usize) -> String {
    match [1, 2, 4, 8].into_iter().find(|quads| width <= 128 * quads) {
        Some(quads) => format!("{pass}_{sublayer}_{compute}_{quads}"),
        None => format!("{pass}_{sublayer}_{compute}_wide"),
    }
}
