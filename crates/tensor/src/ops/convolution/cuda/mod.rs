//! The three products of a convolution on the GPU, over windows gathered (im2col) for some rows at a time.

mod slide;

use bytemuck::NoUninit;

use super::Windows;
use crate::array::Write;
use crate::cuda::{Blocks, Epilogue, Module, Operand, Pointer, Product, multiply};
use crate::ops::elementwise::cuda::unit_of;
use crate::ops::linear::{Activation, gemm_decode};
use crate::{Array, Compute, DType, Device, Param};

pub(super) use slide::{dilated, slide};

pub(crate) static MODULE: Module =
    Module::new("convolution", concat!(include_str!("windows.cu"), include_str!("slide.cu")));

/// Bytes of windows at a time: enough rows to fill the GPU, and little compared with the activations of a
/// step.
const WINDOW_BYTES: usize = 128 << 20;
/// Windows are gathered for multiples of this many rows.
const ROWS: usize = 256;
/// Longer than any sequence, and small enough that distances do not overflow.
const MAX_DILATION: usize = 1 << 31;

/// As in the kernels' source.
#[derive(Clone, Copy, NoUninit)]
#[repr(C)]
struct GatherArgument {
    from: Pointer,
    to: Pointer,
    offsets: Pointer,
    dilation: i64,
    sequences: u32,
    first: u32,
    rows: u32,
    taps: u32,
    before: u32,
    units: u32,
}

/// `y_t = w_t W + b`.
pub(super) fn forward(
    windows: &Windows<'_>,
    weight: &Param,
    bias: Option<&Param>,
    compute: Compute,
) -> Array {
    let (dtype, rows) = (compute.dtype(), windows.of.rows());
    let output = Array::scratch_on(Device::Cuda, dtype, rows, weight.shape()[1]);
    let right = weight.operand(dtype);
    let of_bias = bias.map(|bias| bias.operand(dtype).pointer);
    let epilogue = of_bias.map_or(Epilogue::None, Epilogue::Bias);
    windows.for_row_chunks(|left, part| {
        let out = part.of(output.operand());
        if gemm_decode::needs_batch_invariance(compute) {
            return gemm_decode::multiply(left, right, bias, Activation::Identity, out);
        }
        multiply(&Product { left, right, out, add: false, epilogue });
    });
    output
}

/// `dx` from the windows of `dy`, added to the existing f32 gradient `existing`, if there is one.
pub(super) fn input_gradient(
    windows: &Windows<'_>,
    weight: &Param,
    dtype: DType,
    existing: Option<Array>,
) -> Array {
    let (reversed, add) = (reversed_taps(weight, windows.taps, windows.of.dtype()), existing.is_some());
    let mut sum = existing
        .unwrap_or_else(|| Array::scratch_on(Device::Cuda, dtype, windows.of.rows(), reversed.width()));
    sum.clear_partial_column_sums();
    windows.for_row_chunks(|left, part| {
        let (right, out) = (reversed.operand(), part.of(sum.operand()));
        multiply(&Product { left, right, out, add, epilogue: Epilogue::None });
    });
    sum
}

/// `Σ_t w_tᵀ dy_t` into the gradient of `weight`.
pub(super) fn weight_gradient(windows: &Windows<'_>, gradient: &Array, weight: &Param) {
    let mut slot = weight.gradient_slot();
    let (pointer, write) = slot.on_gpu();
    let [rows, width] = weight.shape();
    if windows.of.rows() == 0 && write == Write::Over {
        return crate::cuda::clear(pointer, rows * width * 4);
    }
    let out = Operand { pointer, dtype: DType::F32, rows, width, stride: width, transposed: false };
    windows.for_row_chunks(|left, part| {
        let (left, right) = (left.transposed(), part.of(gradient.operand()));
        let add = write == Write::Add || part.first > 0;
        multiply(&Product { left, right, out, add, epilogue: Epilogue::None });
    });
}

/// `W′`, the taps of `W` in reverse order and each transposed: k·out × in.
fn reversed_taps(weight: &Param, taps: usize, dtype: DType) -> Array {
    let [rows, outputs] = weight.shape();
    let inputs = rows / taps;
    let reversed = Array::scratch_on(Device::Cuda, dtype, taps * outputs, inputs);
    let function = MODULE.function(format!("reverse_taps_{dtype}"));
    let blocks = Blocks { grid: [inputs.div_ceil(32), outputs.div_ceil(32), taps], threads: 256, shared: 0 };
    let from = weight.operand(dtype).pointer;
    launch!(function, blocks, from, reversed.pointer(), inputs as u32, outputs as u32);
    reversed
}

/// A range of rows.
#[derive(Clone, Copy)]
struct RowRange {
    first: usize,
    rows: usize,
}

impl RowRange {
    /// The same rows of a matrix.
    fn of(self, matrix: Operand) -> Operand {
        let pointer = matrix.pointer.offset(self.first * matrix.stride * matrix.dtype.bytes());
        Operand { pointer, rows: self.rows, ..matrix }
    }
}

impl Windows<'_> {
    /// Calls `work` with the windows of some rows at a time.
    fn for_row_chunks(&self, work: impl Fn(Operand, RowRange)) {
        let (rows, width, dtype) = (self.of.rows(), self.taps * self.of.width(), self.of.dtype());
        let most = WINDOW_BYTES / (width * dtype.bytes()).max(1) / ROWS * ROWS;
        let most = most.max(ROWS).min(rows);
        let windows = Array::scratch_on(Device::Cuda, dtype, most, width);
        let offsets = self.sequences.on_gpu();
        for first in (0..rows).step_by(most.max(1)) {
            let part = RowRange { first, rows: most.min(rows - first) };
            self.gather_on_gpu(part, &windows, offsets.pointer());
            work(Operand { rows: part.rows, ..windows.operand() }, part);
        }
    }

    fn gather_on_gpu(&self, part: RowRange, windows: &Array, offsets: Pointer) {
        let bytes = self.of.width() * self.of.dtype().bytes();
        let unit = unit_of([bytes as u64]);
        let job = GatherArgument {
            from: self.of.pointer(),
            to: windows.pointer(),
            offsets,
            dilation: self.dilation.min(MAX_DILATION) as i64,
            sequences: self.sequences.padded_sequences() as u32,
            first: part.first as u32,
            rows: part.rows as u32,
            taps: self.taps as u32,
            before: self.before as u32,
            units: (bytes / unit) as u32,
        };
        let name = format!("gather_windows_{unit}");
        launch!(MODULE.function(name), Blocks::of(part.rows.div_ceil(4), 128), job);
    }
}
