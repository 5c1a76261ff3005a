//! The products of a linear map on the card, and what happens around them element by element.

use std::sync::Arc;

use super::{Activation, Forward, LinearOptions};
use crate::cuda::{Blocks, DropoutArgument, Epilogue, Module, Operand, Product, multiply};
use crate::ops::elementwise::cuda::column_sums;
use crate::params::{Orientation, Write};
use crate::random::Dropout;
use crate::{Array, Compute, DType, Param, Tensor};

pub(crate) static MODULE: Module = Module::new("linear", include_str!("cuda.cu"));

/// `dropout(f(x W + b))`.
pub(super) fn forward(x: &Tensor, weight: &Param, bias: Option<&Param>, options: LinearOptions) -> Forward {
    let LinearOptions { activation, dropout, compute } = options;
    let bias = bias.map(|bias| bias.operand(compute.dtype).pointer);
    let epilogue = match (activation, bias) {
        (Activation::Relu, Some(bias)) => Epilogue::BiasRelu(bias),
        (Activation::Relu, None) => Epilogue::Relu,
        (Activation::Identity | Activation::Gelu, Some(bias)) => Epilogue::Bias(bias),
        (Activation::Identity | Activation::Gelu, None) => Epilogue::None,
    };
    let mut product = product(x, weight, Orientation::AsIs, compute, epilogue);
    match activation {
        Activation::Gelu => {
            let y = gelu(&product, dropout);
            Forward { output: Arc::new(y), passed: Some(Arc::new(product)) }
        }
        Activation::Relu => {
            drop_in_place(&mut product, dropout);
            let product = Arc::new(product);
            Forward { output: product.clone(), passed: Some(product) }
        }
        Activation::Identity => {
            drop_in_place(&mut product, dropout);
            Forward { output: Arc::new(product), passed: None }
        }
    }
}

/// `dz` from `dy`, in place.
pub(super) fn activation_backward(
    gradient: &mut Array,
    activation: Activation,
    passed: Option<&Array>,
    dropout: Dropout,
) {
    let (n, blocks) = (gradient.len() as u64, Blocks::for_each(gradient.len()));
    match (activation, passed) {
        (Activation::Relu, Some(y)) => {
            let function = MODULE.function(of_type(gradient, "relu_backward_f32", "relu_backward_bf16"));
            let blocks = Blocks::for_each(gradient.len().div_ceil(4));
            launch!(function, blocks, gradient.pointer(), y.pointer(), dropout.scale(), n);
        }
        (Activation::Gelu, Some(z)) => {
            let function = MODULE.function(of_type(gradient, "gelu_backward_f32", "gelu_backward_bf16"));
            launch!(function, blocks, gradient.pointer(), z.pointer(), DropoutArgument::of(dropout), n);
        }
        _ => drop_in_place(gradient, dropout),
    }
}

/// `x Wᵀ`.
pub(super) fn project(x: &Tensor, weight: &Param, compute: Compute) -> Array {
    product(x, weight, Orientation::Transposed, compute, Epilogue::None)
}

/// A product with f32 results.
pub(super) fn wide(x: &Tensor, weight: &Param, orientation: Orientation, dtype: DType) -> Array {
    let right = oriented(weight, orientation, dtype);
    let out = Array::scratch_on(x.device(), DType::F32, x.rows(), right.columns());
    let left = x.array_as(dtype).operand();
    multiply(&Product { left, right, out: out.operand(), add: false, epilogue: Epilogue::None });
    out
}

fn product(
    x: &Tensor,
    weight: &Param,
    orientation: Orientation,
    compute: Compute,
    epilogue: Epilogue,
) -> Array {
    let right = oriented(weight, orientation, compute.dtype);
    let out = Array::scratch_on(x.device(), compute.dtype, x.rows(), right.columns());
    let left = x.array_as(compute.dtype).operand();
    multiply(&Product { left, right, out: out.operand(), add: false, epilogue });
    out
}

fn oriented(weight: &Param, orientation: Orientation, dtype: DType) -> Operand {
    match orientation {
        Orientation::AsIs => weight.operand(dtype),
        Orientation::Transposed => weight.operand(dtype).transposed(),
    }
}

/// `gradient · W` (or `· Wᵀ`), added to the f32 gradient that has `arrived`, if one has.
pub(super) fn input_gradient(
    gradient: &Array,
    weight: &Param,
    orientation: Orientation,
    dtype: DType,
    arrived: Option<Array>,
) -> Array {
    let right = oriented(weight, orientation, gradient.dtype());
    let add = arrived.is_some();
    let sum = arrived
        .unwrap_or_else(|| Array::scratch_on(gradient.device(), dtype, gradient.rows(), right.columns()));
    let left = gradient.operand();
    multiply(&Product { left, right, out: sum.operand(), add, epilogue: Epilogue::None });
    sum
}

/// `leftᵀ · right` into the gradient of `weight`.
pub(super) fn weight_gradient(left: &Array, right: &Array, weight: &Param) {
    let mut slot = weight.gradient_slot();
    let (out, write) = slot.on_card();
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
    let mut slot = bias.gradient_slot();
    let (out, write) = slot.on_card();
    column_sums(gradient, out, write);
}

/// `dropout(gelu(z))` in z's type.
fn gelu(z: &Array, dropout: Dropout) -> Array {
    let y = Array::scratch_on(z.device(), z.dtype(), z.rows(), z.width());
    let function = MODULE.function(of_type(z, "gelu_f32", "gelu_bf16"));
    let blocks = Blocks::for_each(z.len());
    launch!(function, blocks, z.pointer(), y.pointer(), DropoutArgument::of(dropout), z.len() as u64);
    y
}

fn drop_in_place(x: &mut Array, dropout: Dropout) {
    if dropout.is_none() {
        return;
    }
    let function = MODULE.function(of_type(x, "drop_f32", "drop_bf16"));
    let blocks = Blocks::for_each(x.len().div_ceil(4));
    launch!(function, blocks, x.pointer(), DropoutArgument::of(dropout), x.len() as u64);
}

fn of_type(array: &Array, f32: &'static str, bf16: &'static str) -> &'static str {
    match array.dtype() {
        DType::F32 => f32,
        DType::Bf16 => bf16,
    }
}
