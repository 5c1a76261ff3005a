//! Linear maps: `y = dropout(f(x W + b))` and `y = x Wᵀ`.
//!
//! | | shape |
//! |---|---|
//! | `x` | tokens × in |
//! | `W` | in × out ([`linear`]), out × in ([`project`]) |
//! | `b` | 1 × out |
//! | `y` | tokens × out, in the compute type |
//!
//! With `z = x W + b` and `dz = dy · factor · f′(z)`:
//! `dx = dz Wᵀ`, `dW = xᵀ dz`, `db = Σ_t dz_t`.
//!
//! Kept for backward: `x` in the compute type, or a way to make it again; `y` for ReLU (`y > 0` says where it passed), `z` for GELU. Bias,
//! ReLU, dropout and rounding happen inside the product, on sums that are still in the innermost cache.

mod cpu;

use std::sync::Arc;

use crate::cpu::column_sums::add_column_sums;
use crate::cpu::gemm::{self, Finish, Matrix, Output, multiply, multiply_transposed};
use crate::cpu::number::Numbers;
use crate::params::Orientation;
use crate::random::Dropout;
use crate::tape::{Edge, Gradients};
use crate::{Array, Compute, DType, Param, Rows, Tensor};

/// What a linear layer does to its sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    #[default]
    Identity,
    /// `max(0, x)`.
    Relu,
    /// `x Φ(x)`, exact.
    Gelu,
}

/// The choices of [`linear`].
#[derive(Clone, Copy)]
pub struct LinearOptions {
    /// Applied to `x W + b`.
    pub activation: Activation,
    /// Applied after the activation.
    pub dropout: Dropout,
    /// Type of the product and of the result, and for how many rows.
    pub compute: Compute,
}

/// `y = dropout(activation(x W + b))` with `W` of `[in, out]`.
///
/// # Panics
/// If the shapes do not fit, or a bf16 `x` is to be multiplied in f32.
pub fn linear(x: &Tensor, weight: &Param, bias: Option<&Param>, options: LinearOptions) -> Tensor {
    let [inputs, outputs] = weight.shape();
    assert_eq!(x.width(), inputs, "linear: x is {:?}, W is {:?}", x.shape(), weight.shape());
    if let Some(bias) = bias {
        assert_eq!(bias.shape(), [1, outputs], "linear: W is {:?}, b is {:?}", weight.shape(), bias.shape());
    }
    let LinearOptions { activation, dropout, compute } = options;
    let inside = match activation {
        Activation::Relu => Finish { activation: gemm::Activation::Relu, dropout, bias: None },
        Activation::Identity => Finish { dropout, ..Finish::NONE },
        Activation::Gelu => Finish::NONE,
    };
    let product = {
        let bias = bias.map(Param::values);
        let finish = Finish { bias: bias.as_deref(), ..inside };
        product(x, weight, Orientation::AsIs, compute, finish)
    };
    let product = Arc::new(product);
    let output = match activation {
        Activation::Gelu => Arc::new(cpu::gelu(&product, dropout)),
        _ => product.clone(),
    };

    let saved = x.kept_as(compute.dtype);
    // What f′ needs: y for ReLU, z for GELU, nothing for a plain map.
    let passed = (activation != Activation::Identity).then_some(product);
    let (edge, dtype, weight, bias) = (x.edge(), x.dtype(), weight.clone(), bias.cloned());
    Tensor::from_shared(output, move |mut gradient, gradients| {
        match (activation, passed) {
            (Activation::Relu, Some(y)) => cpu::relu_backward(&mut gradient, &y, dropout),
            (Activation::Gelu, Some(z)) => cpu::gelu_backward(&mut gradient, &z, dropout),
            _ if !dropout.is_none() => cpu::dropout_backward(&mut gradient, dropout),
            _ => {}
        }
        // dx = dz Wᵀ
        pull(&gradient, &weight, Orientation::Transposed, &edge, dtype, gradients);
        // dW = xᵀ dz,   db = Σ dz
        map_gradient(&saved.into_array(), &gradient, &weight, bias.as_ref());
    })
}

/// `y = x Wᵀ` with `W` of `[out, in]`: an output projection that may share its matrix with an embedding.
pub fn project(x: &Tensor, weight: &Param, compute: Compute) -> Tensor {
    assert_eq!(x.width(), weight.shape()[1], "project: x is {:?}, W is {:?}", x.shape(), weight.shape());
    let output = product(x, weight, Orientation::Transposed, compute, Finish::NONE);
    let saved = x.kept_as(compute.dtype);
    let (edge, dtype, weight) = (x.edge(), x.dtype(), weight.clone());
    Tensor::from_parameters(output, move |gradient, gradients| {
        // dx = dy W
        pull(&gradient, &weight, Orientation::AsIs, &edge, dtype, gradients);
        // dW = dyᵀ x
        weight_gradient(&gradient, &saved.into_array(), &weight);
    })
}

/// [`project`] for inference, with f32 results whatever the products' type: bf16 has three digits, which would make
/// ties of tokens that a search must tell apart. No gradient flows back.
pub fn project_wide(x: &Tensor, weight: &Param, compute: Compute) -> Tensor {
    assert_eq!(x.width(), weight.shape()[1], "project: x is {:?}, W is {:?}", x.shape(), weight.shape());
    wide(x, weight, Orientation::Transposed, compute)
}

/// `x W` for inference with `W` of `[in, out]`, with f32 results whatever the products' type. No gradient flows back.
pub fn times(x: &Tensor, weight: &Param, compute: Compute) -> Tensor {
    assert_eq!(x.width(), weight.shape()[0], "times: x is {:?}, W is {:?}", x.shape(), weight.shape());
    wide(x, weight, Orientation::AsIs, compute)
}

fn wide(x: &Tensor, weight: &Param, orientation: Orientation, compute: Compute) -> Tensor {
    let packed = weight.packed(orientation, Compute { rows: Rows::Few, ..compute });
    let mut output = Array::scratch(DType::F32, x.rows(), packed.n());
    multiply(Matrix::of(x.array_as(compute.dtype)), &packed, Output::over(&mut output), Finish::NONE);
    Tensor::new(output)
}

fn product(
    x: &Tensor,
    weight: &Param,
    orientation: Orientation,
    compute: Compute,
    finish: Finish<'_>,
) -> Array {
    let packed = weight.packed(orientation, compute);
    let mut output = Array::scratch(compute.dtype, x.rows(), packed.n());
    multiply(Matrix::of(x.array_as(compute.dtype)), &packed, Output::over(&mut output), finish);
    output
}

/// Adds `gradient · W` (or `· Wᵀ`) to the gradient at `edge`, inside the product where the type allows it.
fn pull(
    gradient: &Array,
    weight: &Param,
    orientation: Orientation,
    edge: &Edge,
    dtype: DType,
    gradients: &mut Gradients,
) {
    if !edge.is_wanted() {
        return;
    }
    let packed = weight.packed(orientation, Compute::training(gradient.dtype()));
    let rows = Matrix::of(gradient);
    let arrived = if dtype == DType::F32 { gradients.take(edge) } else { None };
    let sum = match arrived {
        Some(mut sum) => {
            multiply(rows, &packed, Output::AddF32(sum.f32_mut()), Finish::NONE);
            sum
        }
        None => {
            let mut pulled = Array::scratch(dtype, gradient.rows(), packed.n());
            multiply(rows, &packed, Output::over(&mut pulled), Finish::NONE);
            pulled
        }
    };
    gradients.add(edge, sum);
}

/// `leftᵀ · right` into the gradient of `weight`.
pub(crate) fn weight_gradient(left: &Array, right: &Array, weight: &Param) {
    let mut slot = weight.gradient_slot();
    let (values, add) = slot.write();
    let out = if add { Output::AddF32(values) } else { Output::F32(values) };
    multiply_transposed(Matrix::of(left), Matrix::of(right), left.dtype(), out, None);
}

/// `leftᵀ · right` into the gradient of `weight`, and `Σ right` into that of `bias`: packing `right` for the product sums
/// it on the way.
pub(crate) fn map_gradient(left: &Array, right: &Array, weight: &Param, bias: Option<&Param>) {
    let Some(bias) = bias else { return weight_gradient(left, right, weight) };
    let mut sums = Array::zeros(DType::F32, 1, right.width());
    {
        let mut slot = weight.gradient_slot();
        let (values, add) = slot.write();
        let out = if add { Output::AddF32(values) } else { Output::F32(values) };
        let (left, right, dtype) = (Matrix::of(left), Matrix::of(right), left.dtype());
        multiply_transposed(left, right, dtype, out, Some(sums.f32_mut()));
    }
    bias_gradient(&sums, bias);
}

/// `Σ gradient` over rows into the gradient of `bias`.
pub(crate) fn bias_gradient(gradient: &Array, bias: &Param) {
    add_column_sums(Numbers::of(gradient), bias.gradient_slot().accumulate());
}
