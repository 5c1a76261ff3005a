//! The GEMMs of a linear layer, and the elementwise loops around them.

use std::sync::Arc;

use half::bf16;

use super::{Activation, Forward, LinearOptions, Projection};
use crate::array::Write;
use crate::cpu::column_sums::add_column_sums;
use crate::cpu::gemm::int8::{self, Int8Rows};
use crate::cpu::gemm::{
    Finish, Int8Matrix, Matrix, Output, Packed, Rectifier, multiply, multiply_transposed,
};
use crate::cpu::math::{self, from_bf16_bits, to_bf16_bits};
use crate::cpu::number::Numbers;
use crate::cpu::threads::{SharedMut, parallel};
use crate::params::{GradientSlot, Orientation};
use crate::random::Dropout;
use crate::{Array, Compute, DType, Param, Precision, Tensor};

/// Elements of one task.
const CHUNK: usize = 16 * 1024;

/// `dropout(f(x W + b))`.
pub(super) fn forward(x: &Tensor, weight: &Param, bias: Option<&Param>, options: LinearOptions) -> Forward {
    let LinearOptions { activation, dropout, compute } = options;
    let fused = match activation {
        Activation::Relu => Finish { rectifier: Rectifier::Relu, dropout, bias: None },
        Activation::Identity => Finish { dropout, ..Finish::NONE },
        Activation::Gelu | Activation::GeluTanh | Activation::Silu => Finish::NONE,
    };
    let product = Arc::new(match compute.precision {
        Precision::Int8 => {
            let matrix = weight.quantized(Orientation::AsIs);
            int8_product(x, &matrix, Finish { bias: bias.map(Param::values).as_deref(), ..fused })
        }
        Precision::F32 | Precision::Bf16 => {
            let packed = weight.packed(Orientation::AsIs, compute);
            product(x, &packed, compute, Finish { bias: bias.map(Param::values).as_deref(), ..fused })
        }
    });
    let output = match activation {
        Activation::Gelu => Arc::new(smooth(&product, dropout, math::gelu)),
        Activation::GeluTanh => Arc::new(smooth(&product, dropout, math::gelu_tanh)),
        Activation::Silu => Arc::new(smooth(&product, dropout, math::silu)),
        Activation::Identity | Activation::Relu => product.clone(),
    };
    Forward { output, saved_for_activation: (activation != Activation::Identity).then_some(product) }
}

/// `dz` from `dy`, in place.
pub(super) fn activation_backward(
    gradient: &mut Array,
    activation: Activation,
    saved_for_activation: Option<&Array>,
    dropout: Dropout,
) {
    match (activation, saved_for_activation) {
        (Activation::Relu, Some(y)) => relu_backward(gradient, y, dropout),
        (Activation::Gelu, Some(z)) => smooth_backward(gradient, z, dropout, math::gelu_slope),
        (Activation::GeluTanh, Some(z)) => smooth_backward(gradient, z, dropout, math::gelu_tanh_slope),
        (Activation::Silu, Some(z)) => smooth_backward(gradient, z, dropout, math::silu_slope),
        _ if !dropout.is_none() => dropout_backward(gradient, dropout),
        _ => {}
    }
}

/// `x Wᵀ + b`.
pub(super) fn project(x: &Tensor, Projection { weight, bias }: Projection<'_>, compute: Compute) -> Array {
    let bias = bias.map(Param::values);
    let finish = Finish { bias: bias.as_deref(), ..Finish::NONE };
    match compute.precision {
        Precision::Int8 => int8_product(x, &weight.quantized(Orientation::Transposed), finish),
        Precision::F32 | Precision::Bf16 => {
            product(x, &weight.packed(Orientation::Transposed, compute), compute, finish)
        }
    }
}

/// A product for few rows with f32 results.
pub(super) fn f32_out(
    x: &Tensor,
    Projection { weight, bias }: Projection<'_>,
    orientation: Orientation,
    precision: Precision,
) -> Array {
    let bias = bias.map(Param::values);
    let finish = Finish { bias: bias.as_deref(), ..Finish::NONE };
    if precision == Precision::Int8 {
        return int8_product(x, &weight.quantized(orientation), finish);
    }
    let (dtype, packed) = (precision.dtype(), weight.packed(orientation, Compute::inference(precision)));
    let mut output = Array::scratch(DType::F32, x.rows(), packed.n());
    multiply(Matrix::of(x.array_as(dtype)), &packed, Output::over(&mut output), finish);
    output
}

fn product(x: &Tensor, packed: &Packed, compute: Compute, finish: Finish<'_>) -> Array {
    let mut output = Array::scratch(compute.dtype(), x.rows(), packed.n());
    multiply(Matrix::of(x.array_as(compute.dtype())), packed, Output::over(&mut output), finish);
    output
}

/// An int8 product: rows are quantized on the fly, weights were quantized once.
fn int8_product(x: &Tensor, matrix: &Int8Matrix, finish: Finish<'_>) -> Array {
    let rows = Int8Rows::new(x.array_as(DType::F32).f32(), x.width());
    let mut output = Array::scratch(DType::F32, x.rows(), matrix.n());
    int8::multiply(&rows, matrix, Output::over(&mut output), finish);
    output
}

/// `gradient · W` (or `· Wᵀ`), added to the f32 gradient `accumulated` so far, if there is one.
pub(super) fn input_gradient(
    gradient: &Array,
    weight: &Param,
    orientation: Orientation,
    dtype: DType,
    accumulated: Option<Array>,
) -> Array {
    let packed = weight.packed(orientation, Compute::training(gradient.dtype()));
    let rows = Matrix::of(gradient);
    match accumulated {
        Some(mut sum) => {
            multiply(rows, &packed, Output::AddF32(sum.f32_mut()), Finish::NONE);
            sum
        }
        None => {
            let mut own = Array::scratch(dtype, gradient.rows(), packed.n());
            multiply(rows, &packed, Output::over(&mut own), Finish::NONE);
            own
        }
    }
}

/// `leftᵀ · right` into the gradient of `weight`.
pub(super) fn weight_gradient(left: &Array, right: &Array, weight: &Param) {
    let mut slot = weight.gradient_slot();
    let out = gradient_output(&mut slot);
    multiply_transposed(Matrix::of(left), Matrix::of(right), left.dtype(), out, None);
}

/// [`weight_gradient`] and [`bias_gradient`]: packing `right` for the GEMM also sums it.
pub(super) fn map_gradient(left: &Array, right: &Array, weight: &Param, bias: &Param) {
    let mut sums = Array::zeros(DType::F32, 1, right.width());
    {
        let mut slot = weight.gradient_slot();
        let out = gradient_output(&mut slot);
        let (left, right, dtype) = (Matrix::of(left), Matrix::of(right), left.dtype());
        multiply_transposed(left, right, dtype, out, Some(sums.f32_mut()));
    }
    bias_gradient(&sums, bias);
}

/// The GEMM output that writes a parameter's gradient, or adds to it.
fn gradient_output<'a>(slot: &'a mut GradientSlot<'_>) -> Output<'a> {
    match slot.write() {
        (values, Write::Add) => Output::AddF32(values),
        (values, Write::Over) => Output::F32(values),
    }
}

/// `Σ gradient` over rows into the gradient of `bias`.
pub(super) fn bias_gradient(gradient: &Array, bias: &Param) {
    add_column_sums(Numbers::of(gradient), bias.gradient_slot().accumulate());
}

/// `dropout(f(z))` in z's type.
fn smooth(z: &Array, dropout: Dropout, f: impl Fn(f32) -> f32 + Sync + Copy) -> Array {
    let mut y = z.clone();
    each(&mut y, None, dropout, |x, _, factor| f(x) * factor);
    y
}

/// `dz = dy · factor · [y > 0]`. Dropped elements are 0 in y as well.
fn relu_backward(gradient: &mut Array, y: &Array, dropout: Dropout) {
    let scale = dropout.scale();
    each(gradient, Some(y), Dropout::NONE, move |dy, y, _| if y > 0.0 { dy * scale } else { 0.0 });
}

/// `dz = dy · factor · f′(z)`.
fn smooth_backward(
    gradient: &mut Array,
    z: &Array,
    dropout: Dropout,
    slope: impl Fn(f32) -> f32 + Sync + Copy,
) {
    each(gradient, Some(z), dropout, |dy, z, factor| dy * factor * slope(z));
}

/// `dz = dy · factor`.
fn dropout_backward(gradient: &mut Array, dropout: Dropout) {
    each(gradient, None, dropout, |dy, _, factor| dy * factor);
}

/// `x_i = f(x_i, other_i, dropout factor_i)`, in chunks on all threads.
fn each(
    x: &mut Array,
    other: Option<&Array>,
    dropout: Dropout,
    f: impl Fn(f32, f32, f32) -> f32 + Sync + Copy,
) {
    let n = x.len();
    match x.dtype() {
        DType::F32 => {
            let shared = SharedMut::new(x.f32_mut());
            parallel(n.div_ceil(CHUNK), |task| {
                let range = task * CHUNK..((task + 1) * CHUNK).min(n);
                // SAFETY: tasks have disjoint ranges.
                let x = unsafe { shared.slice(range.clone()) };
                chunk_f32(x, other.map(|other| &other.f32()[range.clone()]), range.start, dropout, f);
            });
        }
        DType::Bf16 => {
            let shared = SharedMut::new(x.bf16_mut());
            parallel(n.div_ceil(CHUNK), |task| {
                let range = task * CHUNK..((task + 1) * CHUNK).min(n);
                // SAFETY: tasks have disjoint ranges.
                let x = unsafe { shared.slice(range.clone()) };
                chunk_bf16(x, other.map(|other| &other.bf16()[range.clone()]), range.start, dropout, f);
            });
        }
    }
}

kernel! {
    fn chunk_f32<F: Fn(f32, f32, f32) -> f32>(x: &mut [f32], other: Option<&[f32]>, start: usize, dropout: Dropout, f: F) {
        match other {
            Some(other) => {
                for (i, (x, &other)) in x.iter_mut().zip(other).enumerate() {
                    *x = f(*x, other, dropout.factor(start + i));
                }
            }
            None => {
                for (i, x) in x.iter_mut().enumerate() {
                    *x = f(*x, 0.0, dropout.factor(start + i));
                }
            }
        }
    }
}

kernel! {
    fn chunk_bf16<F: Fn(f32, f32, f32) -> f32>(x: &mut [bf16], other: Option<&[bf16]>, start: usize, dropout: Dropout, f: F) {
        let widen = |x: bf16| from_bf16_bits(x.to_bits());
        match other {
            Some(other) => {
                for (i, (x, &other)) in x.iter_mut().zip(other).enumerate() {
                    *x = bf16::from_bits(to_bf16_bits(f(widen(*x), widen(other), dropout.factor(start + i))));
                }
            }
            None => {
                for (i, x) in x.iter_mut().enumerate() {
                    *x = bf16::from_bits(to_bf16_bits(f(widen(*x), 0.0, dropout.factor(start + i))));
                }
            }
        }
    }
}
