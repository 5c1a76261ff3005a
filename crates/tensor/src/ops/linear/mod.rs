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
//! Kept for backward: `x` in the compute type, or a way to recompute it; `y` for ReLU (`y > 0` says where it passed), `z` for the
//! smooth activations. Bias,
//! ReLU, dropout and rounding happen inside the product, on sums that are still in the innermost cache.

mod cpu;
pub(crate) mod cuda;
pub(crate) mod few;
pub(crate) mod hopper;

use std::sync::Arc;

use crate::flops;
use crate::params::Orientation;
use crate::random::Dropout;
use crate::tape::{Edge, Gradients};
use crate::{Array, Compute, DType, Device, Param, Precision, Tensor};

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
    /// `x (1 + tanh √(2/π) (x + 0.044715 x³)) / 2`, the approximation of GELU.
    GeluTanh,
    /// `x σ(x)`.
    Silu,
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
    flops::add_product(x.rows(), x.width(), weight.shape()[1]);
    let Forward { output, passed } = match x.device() {
        Device::Cpu => cpu::forward(x, weight, bias, options),
        Device::Cuda => cuda::forward(x, weight, bias, options),
    };
    let LinearOptions { activation, dropout, compute } = options;
    let saved = x.kept_as(compute.dtype());
    let (edge, dtype, weight, bias) = (x.edge(), x.dtype(), weight.clone(), bias.cloned());
    Tensor::from_shared(output, move |mut gradient, gradients| {
        // y = dropout(f(z))
        match gradient.device() {
            Device::Cpu => cpu::activation_backward(&mut gradient, activation, passed.as_deref(), dropout),
            Device::Cuda => cuda::activation_backward(&mut gradient, activation, passed.as_deref(), dropout),
        }
        // dx = dz Wᵀ
        add_input_gradient(&gradient, (&weight, Orientation::Transposed), (&edge, dtype), gradients);
        // dW = xᵀ dz,   db = Σ dz
        let saved = saved.into_array();
        match gradient.device() {
            Device::Cpu => map_gradient(&saved, &gradient, &weight, bias.as_ref()),
            // Nobody reads it before the end of the step.
            Device::Cuda => crate::cuda::aside((saved, gradient), |(saved, gradient)| {
                map_gradient(saved, gradient, &weight, bias.as_ref());
            }),
        }
    })
}

/// What the forward pass of [`linear`] computes.
struct Forward {
    output: Arc<Array>,
    /// What f′ needs: y for ReLU, z for the smooth activations, nothing for a plain map.
    passed: Option<Arc<Array>>,
}

/// `x Wᵀ + b` with `W` of `[out, in]`: an output projection, which may share its matrix with an embedding. A matrix alone
/// is one without bias.
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
    let saved = x.kept_as(compute.dtype());
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

/// [`project`] for inference, with f32 results whatever the products' type: bf16 has three digits, which would make
/// ties of tokens that a search must tell apart. The product is that for few rows in any pass. No gradient flows back.
pub fn project_wide<'a>(x: &Tensor, projection: impl Into<Projection<'a>>, compute: Compute) -> Tensor {
    let projection = projection.into();
    projection.check("project", x);
    wide(x, projection, Orientation::Transposed, compute.precision)
}

/// As [`project_wide`] on a GPU, with the marks of the scores where they are made on the way.
pub(super) fn project_marked(
    x: &Tensor,
    projection: Projection<'_>,
    compute: Compute,
) -> (Array, Option<Array>) {
    projection.check("project", x);
    few::scores(x, projection, compute.dtype())
}

/// `x W` for inference with `W` of `[in, out]`, as [`project_wide`].
pub fn times(x: &Tensor, weight: &Param, compute: Compute) -> Tensor {
    assert_eq!(x.width(), weight.shape()[0], "times: x is {:?}, W is {:?}", x.shape(), weight.shape());
    wide(x, weight.into(), Orientation::AsIs, compute.precision)
}

fn wide(x: &Tensor, map: Projection<'_>, orientation: Orientation, precision: Precision) -> Tensor {
    Tensor::new(match x.device() {
        Device::Cpu => cpu::wide(x, map, orientation, precision),
        Device::Cuda => cuda::wide(x, map, orientation, precision.dtype()),
    })
}

/// Adds `gradient · W` (or `· Wᵀ`) to the gradient at an edge to a tensor of this type, inside the product where the type
/// allows it.
fn add_input_gradient(
    gradient: &Array,
    (weight, orientation): (&Param, Orientation),
    (edge, dtype): (&Edge, DType),
    gradients: &mut Gradients,
) {
    if !edge.is_wanted() {
        return;
    }
    let arrived = if dtype == DType::F32 { gradients.take(edge) } else { None };
    let sum = match gradient.device() {
        Device::Cpu => cpu::input_gradient(gradient, weight, orientation, dtype, arrived),
        Device::Cuda => cuda::input_gradient(gradient, weight, orientation, dtype, arrived),
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
