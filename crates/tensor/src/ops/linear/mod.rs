//! Linear maps: `y = dropout(f(x W + b))` and `y = x Wᵀ + b`.
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
//! Saved for backward: `x` in the compute type, or a way to recompute it; `y` for ReLU (`y > 0` where the
//! gradient passes), `z` for the smooth activations. Bias, ReLU, dropout and rounding are fused into the
//! GEMM, on sums that are still in the L1 cache.

mod cpu;
pub(crate) mod cuda;
pub(crate) mod gemm_decode;
pub(crate) mod gemm_sm90;

use std::sync::Arc;

use crate::flops;
use crate::params::Orientation;
use crate::random::Dropout;
use crate::tape::{Edge, Gradients};
use crate::{Array, Compute, DType, Device, Param, Precision, Tensor};

/// The activation function of a linear layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activation {
    /// `x`.
    #[default]
    Identity,
    /// `max(0, x)`.
    Relu,
    /// `x Φ(x)`, exact.
    Gelu,
    /// `x (1 + tanh √(2/π) (x + 0.044715 x³)) / 2`, the approximation of GELU.
    GeluTanh,
    /// `x σ(x)`.
    Silu,
}

/// The options of [`linear`].
#[derive(Clone, Copy)]
pub struct LinearOptions {
    /// Applied to `x W + b`.
    pub activation: Activation,
    /// Applied after the activation.
    pub dropout: Dropout,
    /// Type of the GEMM and of the result, and whether for few rows or many.
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
    flops::add_product(x.rows(), x.width(), weight.shape()[1]);
    let Forward { output, saved_for_activation } = match x.device() {
        Device::Cpu => cpu::forward(x, weight, bias, options),
        Device::Cuda => cuda::forward(x, weight, bias, options),
    };
    let LinearOptions { activation, dropout, compute } = options;
    let saved = x.saved_as(compute.dtype());
    let (edge, dtype, weight, bias) = (x.edge(), x.dtype(), weight.clone(), bias.cloned());
    Tensor::from_shared(output, move |mut gradient, gradients| {
        // y = dropout(f(z))
        match gradient.device() {
            Device::Cpu => {
                cpu::activation_backward(&mut gradient, activation, saved_for_activation.as_deref(), dropout);
            }
            Device::Cuda => {
                cuda::activation_backward(
                    &mut gradient,
                    activation,
                    saved_for_activation.as_deref(),
                    dropout,
                );
            }
        }
        // dx = dz Wᵀ
        add_input_gradient(&gradient, (&weight, Orientation::Transposed), (&edge, dtype), gradients);
        // dW = xᵀ dz,   db = Σ dz
        let saved = saved.into_array();
        match gradient.device() {
            Device::Cpu => map_gradient(&saved, &gradient, &weight, bias.as_ref()),
            // The weight gradient is not read before the end of the step: a side stream computes it.
            Device::Cuda => crate::cuda::on_side_stream((saved, gradient), |(saved, gradient)| {
                map_gradient(saved, gradient, &weight, bias.as_ref());
            }),
        }
    })
}

/// The results of the forward pass of [`linear`].
struct Forward {
    output: Arc<Array>,
    /// The input of f′: y for ReLU, z for the smooth activations, nothing for the identity.
    saved_for_activation: Option<Arc<Array>>,
}

/// `x Wᵀ + b` with `W` of `[out, in]`: an output projection, which may share its matrix with an embedding. A
/// `&Param` converts into a projection without bias.
#[derive(Clone, Copy)]
pub struct Projection<'a> {
    /// `W`
    pub weight: &'a Param,
    /// `b`, of `[1, out]`.
    pub bias: Option<&'a Param>,
}

impl<'a> From<&'a Param> for Projection<'a> {
    fn from(weight: &'a Param) -> Projection<'a> {
        Projection { weight, bias: None }
    }
}

impl Projection<'_> {
    /// Panics with the operation's name and the shapes if they do not fit.
    pub(crate) fn check(self, op: &str, x: &Tensor) {
        let [outputs, inputs] = self.weight.shape();
        assert_eq!(x.width(), inputs, "{op}: x is {:?}, W is {:?}", x.shape(), self.weight.shape());
        if let Some(bias) = self.bias {
            assert_eq!(
                bias.shape(),
                [1, outputs],
                "{op}: W is {:?}, b is {:?}",
                self.weight.shape(),
                bias.shape()
            );
        }
    }
}

/// `y = x Wᵀ + b`.
pub fn project<'a>(x: &Tensor, projection: impl Into<Projection<'a>>, compute: Compute) -> Tensor {
    let projection = projection.into();
    projection.check("project", x);
    flops::add_product(x.rows(), x.width(), projection.weight.shape()[0]);
    let output = match x.device() {
        Device::Cpu => cpu::project(x, projection, compute),
        Device::Cuda => cuda::project(x, projection, compute),
    };
    let saved = x.saved_as(compute.dtype());
    let (edge, dtype) = (x.edge(), x.dtype());
    let (weight, bias) = (projection.weight.clone(), projection.bias.cloned());
    Tensor::from_parameters(output, move |gradient, gradients| {
        // dx = dy W
        add_input_gradient(&gradient, (&weight, Orientation::AsIs), (&edge, dtype), gradients);
        // dW = dyᵀ x,   db = Σ dy
        weight_gradient(&gradient, &saved.into_array(), &weight);
        if let Some(bias) = &bias {
            bias_gradient(&gradient, bias);
        }
    })
}

/// [`project`] for inference, with f32 results whatever the compute type: bf16 logits have three digits,
/// which would create ties between tokens that beam search must rank. Always uses the kernels for few rows.
/// No gradient flows back.
pub fn project_f32_out<'a>(x: &Tensor, projection: impl Into<Projection<'a>>, compute: Compute) -> Tensor {
    let projection = projection.into();
    projection.check("project", x);
    f32_out(x, projection, Orientation::Transposed, compute.precision)
}

/// As [`project_f32_out`] on a GPU, with the block statistics of the logits if the GEMM kernel also writes
/// them.
pub(super) fn project_with_block_stats(
    x: &Tensor,
    projection: Projection<'_>,
    compute: Compute,
) -> (Array, Option<Array>) {
    projection.check("project", x);
    gemm_decode::logits(x, projection, compute.dtype())
}

/// `x W` for inference with `W` of `[in, out]` and f32 results, as [`project_f32_out`].
pub fn matmul_f32_out(x: &Tensor, weight: &Param, compute: Compute) -> Tensor {
    assert_eq!(
        x.width(),
        weight.shape()[0],
        "matmul_f32_out: x is {:?}, W is {:?}",
        x.shape(),
        weight.shape()
    );
    f32_out(x, weight.into(), Orientation::AsIs, compute.precision)
}

fn f32_out(x: &Tensor, map: Projection<'_>, orientation: Orientation, precision: Precision) -> Tensor {
    Tensor::new(match x.device() {
        Device::Cpu => cpu::f32_out(x, map, orientation, precision),
        Device::Cuda => cuda::f32_out(x, map, orientation, precision.dtype()),
    })
}

/// Adds `gradient · W` (or `· Wᵀ`) to the gradient at an edge to a tensor of this type. An f32 gradient is
/// accumulated inside the GEMM.
fn add_input_gradient(
    gradient: &Array,
    (weight, orientation): (&Param, Orientation),
    (edge, dtype): (&Edge, DType),
    gradients: &mut Gradients,
) {
    if !edge.requires_grad() {
        return;
    }
    let accumulated = if dtype == DType::F32 { gradients.take(edge) } else { None };
    let sum = match gradient.device() {
        Device::Cpu => cpu::input_gradient(gradient, weight, orientation, dtype, accumulated),
        Device::Cuda => cuda::input_gradient(gradient, weight, orientation, dtype, accumulated),
    };
    gradients.add(edge, sum);
}

/// `leftᵀ · right` into the gradient of `weight`.
pub(crate) fn weight_gradient(left: &Array, right: &Array, weight: &Param) {
    match left.device() {
        Device::Cpu => cpu::weight_gradient(left, right, weight),
        Device::Cuda => cuda::weight_gradient(left, right, weight),
    }
}

/// `leftᵀ · right` into the gradient of `weight`, and `Σ right` into that of `bias`.
pub(crate) fn map_gradient(left: &Array, right: &Array, weight: &Param, bias: Option<&Param>) {
    let Some(bias) = bias else { return weight_gradient(left, right, weight) };
    match left.device() {
        Device::Cpu => cpu::map_gradient(left, right, weight, bias),
        Device::Cuda => cuda::map_gradient(left, right, weight, bias),
    }
}

/// `Σ gradient` over rows into the gradient of `bias`.
pub(crate) fn bias_gradient(gradient: &Array, bias: &Param) {
    match gradient.device() {
        Device::Cpu => cpu::bias_gradient(gradient, bias),
        Device::Cuda => cuda::bias_gradient(gradient, bias),
    }
}
