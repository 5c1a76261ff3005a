//! The GEMMs of a linear layer on the GPU, and the elementwise kernels around them.

use std::sync::Arc;

use super::{Activation, Forward, LinearOptions, Projection, gemm_decode};
use crate::array::Write;
use crate::cuda::{Blocks, DropoutArgument, Epilogue, Gpu, Module, Operand, Product, gpu, multiply};
use crate::params::Orientation;
use crate::random::Dropout;
use crate::{Array, Compute, DType, Device, Param, Tensor};

pub(crate) static MODULE: Module = Module::with_pdl(
    "linear",
    concat!(include_str!("activations.cu"), include_str!("cuda.cu"), include_str!("column_sums.cu")),
);

/// `dropout(f(x W + b))`.
pub(super) fn forward(x: &Tensor, weight: &Param, bias: Option<&Param>, options: LinearOptions) -> Forward {
    let LinearOptions { activation, dropout, compute } = options;
    if gemm_decode::needs_batch_invariance(compute) && dropout.is_none() {
        let dtype = compute.dtype();
        let map = Projection { weight, bias };
        let output = gemm_decode::linear(x, map, Orientation::AsIs, activation, [dtype; 2]);
        return Forward { output: Arc::new(output), saved_for_activation: None };
    }
    let bias = bias.map(|bias| bias.operand(compute.dtype()).pointer);
    let epilogue = match (activation, bias) {
        (Activation::Relu, Some(bias)) => Epilogue::BiasRelu(bias),
        (Activation::Relu, None) => Epilogue::Relu,
        (_, Some(bias)) => Epilogue::Bias(bias),
        (_, None) => Epilogue::None,
    };
    let mut product = product(x, weight, Orientation::AsIs, compute, epilogue);
    match activation {
        Activation::Gelu | Activation::GeluTanh | Activation::Silu => {
            let y = smooth(&product, activation, dropout);
            Forward { output: Arc::new(y), saved_for_activation: Some(Arc::new(product)) }
        }
        Activation::Relu => {
            drop_in_place(&mut product, dropout);
            let product = Arc::new(product);
            Forward { output: product.clone(), saved_for_activation: Some(product) }
        }
        Activation::Identity => {
            drop_in_place(&mut product, dropout);
            Forward { output: Arc::new(product), saved_for_activation: None }
        }
    }
}

/// `dz` from `dy`, in place.
pub(super) fn activation_backward(
    gradient: &mut Array,
    activation: Activation,
    saved_for_activation: Option<&Array>,
    dropout: Dropout,
) {
    let (n, blocks) = (gradient.len() as u64, Blocks::for_each(gradient.len()));
    match (activation, saved_for_activation) {
        (Activation::Relu, Some(y)) => {
            let function = MODULE.function(format!("relu_backward_{}", gradient.dtype()));
            let ColumnSums { partial, blocks, sizes: [rows, width, part] } = ColumnSums::of(gradient);
            let (g, sums, scale) = (gradient.pointer(), partial.pointer(), dropout.scale());
            launch!(function, blocks, g, y.pointer(), sums, rows, width, part, scale);
            gradient.set_partial_column_sums(Arc::new(partial), 0);
        }
        (Activation::Gelu | Activation::GeluTanh | Activation::Silu, Some(z)) => {
            let function =
                MODULE.function(format!("{}_backward_{}", kernel_name(activation), gradient.dtype()));
            let dropout = DropoutArgument::of(dropout);
            launch!(function, blocks, gradient.pointer(), z.pointer(), dropout.pointer(), n);
            gradient.clear_partial_column_sums();
        }
        _ => drop_in_place(gradient, dropout),
    }
}

/// `x Wᵀ + b`.
pub(super) fn project(x: &Tensor, map: Projection<'_>, compute: Compute) -> Array {
    if gemm_decode::needs_batch_invariance(compute) {
        let dtypes = [compute.dtype(); 2];
        return gemm_decode::linear(x, map, Orientation::Transposed, Activation::Identity, dtypes);
    }
    let Projection { weight, bias } = map;
    let bias = bias.map(|bias| bias.operand(compute.dtype()).pointer);
    product(x, weight, Orientation::Transposed, compute, bias.map_or(Epilogue::None, Epilogue::Bias))
}

/// A product with f32 results.
pub(super) fn f32_out(x: &Tensor, map: Projection<'_>, orientation: Orientation, dtype: DType) -> Array {
    gemm_decode::linear(x, map, orientation, Activation::Identity, [dtype, DType::F32])
}

fn product(
    x: &Tensor,
    weight: &Param,
    orientation: Orientation,
    compute: Compute,
    epilogue: Epilogue,
) -> Array {
    let right = oriented(weight, orientation, compute.dtype());
    let out = Array::scratch_on(x.device(), compute.dtype(), x.rows(), right.columns());
    let left = x.array_as(compute.dtype()).operand();
    multiply(&Product { left, right, out: out.operand(), add: false, epilogue });
    out
}

fn oriented(weight: &Param, orientation: Orientation, dtype: DType) -> Operand {
    match orientation {
        Orientation::AsIs => weight.operand(dtype),
        Orientation::Transposed => weight.operand(dtype).transposed(),
    }
}

/// `gradient · W` (or `· Wᵀ`), added to the f32 gradient `accumulated` so far, if there is one.
pub(super) fn input_gradient(
    gradient: &Array,
    weight: &Param,
    orientation: Orientation,
    dtype: DType,
    accumulated: Option<Array>,
) -> Array {
    let right = oriented(weight, orientation, gradient.dtype());
    let add = accumulated.is_some();
    let mut sum = accumulated
        .unwrap_or_else(|| Array::scratch_on(gradient.device(), dtype, gradient.rows(), right.columns()));
    sum.clear_partial_column_sums();
    let left = gradient.operand();
    multiply(&Product { left, right, out: sum.operand(), add, epilogue: Epilogue::None });
    sum
}

/// `leftᵀ · right` into the gradient of `weight`.
pub(super) fn weight_gradient(left: &Array, right: &Array, weight: &Param) {
    let mut slot = weight.gradient_slot();
    let (out, write) = slot.on_gpu();
    let (left, right) = (left.operand().transposed(), right.operand());
    let [rows, width] = weight.shape();
    let out = Operand { pointer: out, dtype: DType::F32, rows, width, stride: width, transposed: false };
    multiply(&Product { left, right, out, add: write == Write::Add, epilogue: Epilogue::None });
}

/// [`weight_gradient`] and [`bias_gradient`].
pub(super) fn map_gradient(left: &Array, right: &Array, weight: &Param, bias: &Param) {
    weight_gradient(left, right, weight);
    bias_gradient(right, bias);
}

/// `Σ gradient` over rows into the gradient of `bias`.
pub(super) fn bias_gradient(gradient: &Array, bias: &Param) {
    // The kernel that computed the gradient may have summed it already.
    let (partial, column) =
        gradient.partial_column_sums().unwrap_or_else(|| (Arc::new(column_sums(gradient)), 0));
    bias.gradient_slot().defer_column_sum(partial, column);
}

/// The buffer of partial column sums, and the launch that computes them.
struct ColumnSums {
    partial: Array,
    blocks: Blocks,
    /// Rows, width, rows of one partial sum (so many that every multiprocessor gets two blocks).
    sizes: [u32; 3],
}

impl ColumnSums {
    fn of(x: &Array) -> ColumnSums {
        ColumnSums::of_shape(x.rows(), x.width())
    }

    fn of_shape(rows: usize, width: usize) -> ColumnSums {
        let column_blocks = width.div_ceil(256);
        let blocks = (2 * gpu().map_or(1, Gpu::multiprocessors)).div_ceil(column_blocks);
        let part = rows.div_ceil(blocks).next_multiple_of(8).clamp(16, 512);
        let parts = rows.div_ceil(part);
        ColumnSums {
            partial: Array::scratch_on(Device::Cuda, DType::F32, parts, width),
            blocks: Blocks { grid: [column_blocks, parts, 1], threads: 256, shared: 0 },
            sizes: [rows, width, part].map(|size| size as u32),
        }
    }
}

/// Partial sums over the rows of x.
pub(in crate::ops) fn column_sums(x: &Array) -> Array {
    column_sums_of(x.operand())
}

/// As [`column_sums`] for contiguous rows of a larger matrix.
pub(in crate::ops) fn column_sums_of(x: Operand) -> Array {
    debug_assert!(x.stride == x.width && !x.transposed, "{x:?} is not contiguous");
    let function = MODULE.function(format!("column_sums_{}", x.dtype));
    let ColumnSums { partial, blocks, sizes: [rows, width, part] } = ColumnSums::of_shape(x.rows, x.width);
    launch!(function, blocks, x.pointer, partial.pointer(), rows, width, part);
    partial
}

/// `dropout(f(z))` in z's type.
fn smooth(z: &Array, activation: Activation, dropout: Dropout) -> Array {
    let y = Array::scratch_on(z.device(), z.dtype(), z.rows(), z.width());
    let function = MODULE.function(format!("{}_{}", kernel_name(activation), z.dtype()));
    let blocks = Blocks::for_each(z.len());
    let dropout = DropoutArgument::of(dropout);
    launch!(function, blocks, z.pointer(), y.pointer(), dropout.pointer(), z.len() as u64);
    y
}

/// The activation's name in the kernels' source.
fn kernel_name(smooth: Activation) -> &'static str {
    match smooth {
        Activation::GeluTanh => "gelu_tanh",
        Activation::Silu => "silu",
        _ => "gelu",
    }
}

fn drop_in_place(x: &mut Array, dropout: Dropout) {
    if dropout.is_none() {
        return;
    }
    let function = MODULE.function(format!("drop_{}", x.dtype()));
    let blocks = Blocks::for_each(x.len().div_ceil(4));
    let dropout = DropoutArgument::of(dropout);
    launch!(function, blocks, x.pointer(), dropout.pointer(), x.len() as u64);
    x.clear_partial_column_sums();
}
