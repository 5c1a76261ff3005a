//! Residual connection, dropout and layer norm in one pass over memory.
//!
//! For each row of width d:
//!
//! ```text
//! z = x + dropout(sublayer)                      (layer_norm: z = x)
//! μ = Σ z / d       σ² = Σ (z − μ)² / d          (the biased variance)
//! x̂ = (z − μ) / √(σ² + ε)
//! y = γ x̂ + β
//! ```
//!
//! Gradient, with `g = dy` and `h = γ g = dx̂`:
//!
//! ```text
//! dγ = Σ_rows g x̂        dβ = Σ_rows g
//! dz = (h − mean(h) − x̂ · mean(h x̂)) / √(σ² + ε)
//! dx = dz                dsublayer = dz · dropout factor
//! ```
//!
//! Shapes: x, sublayer and y are `rows × d`, γ and β are `1 × d`. x and y are f32; a sublayer is f32 or bf16.
//! Saved for backward: x̂ in the compute type and one `1 / √(σ² + ε)` for each row; the dropout factors are a
//! function of the element's index. In f32, consumers that need y for backward recompute it from x̂, so that
//! only one of the two is saved (a rounded x̂ would not give the bits of y). On the CPU, the sums over rows
//! behind dγ and dβ are computed for every 64 rows and added in order, so they do not depend on the number of
//! threads.

mod cpu;
pub(crate) mod cuda;

use std::sync::Arc;

use crate::random::Dropout;
use crate::tape::{self, Gradients};
use crate::{Array, Compute, DType, Device, Param, Tensor};

/// The options of [`layer_norm`] and [`residual_norm`].
#[derive(Clone, Copy)]
pub struct NormOptions {
    /// ε under the root.
    pub epsilon: f32,
    /// Input type of the following GEMMs: for bf16 the result is also written in bf16.
    pub compute: Compute,
}

/// `y = γ (x − mean) / √(var + ε) + β`, per row; x f32, y f32.
///
/// # Panics
/// If γ or β is not one row as wide as x, or x is not f32.
pub fn layer_norm(x: &Tensor, gamma: &Param, beta: &Param, options: NormOptions) -> Tensor {
    normalized("layer_norm", x, None, gamma, beta, options)
}

/// `LayerNorm(x + dropout(sublayer))`: x f32, sublayer f32 or bf16, result f32.
///
/// # Panics
/// If the shapes differ, γ or β is not one row as wide as x, or x is not f32.
pub fn residual_norm(
    x: &Tensor,
    sublayer: &Tensor,
    gamma: &Param,
    beta: &Param,
    dropout: Dropout,
    options: NormOptions,
) -> Tensor {
    normalized("residual_norm", x, Some((sublayer, dropout)), gamma, beta, options)
}

/// `x + dropout(sublayer)`: x f32, sublayer f32 or bf16, result f32.
///
/// # Panics
/// If the shapes differ, or x is not f32.
pub fn residual(x: &Tensor, sublayer: &Tensor, dropout: Dropout) -> Tensor {
    check_pair("residual", x, sublayer);
    let y = match x.device() {
        Device::Cpu => cpu::residual(x.array(), sublayer.array(), dropout),
        Device::Cuda => cuda::residual(x.array(), sublayer.array(), dropout),
    };

    let (x_edge, sublayer_edge, dtype) = (x.edge(), sublayer.edge(), sublayer.dtype());
    Tensor::from_inputs(y, &[x, sublayer], move |g, gradients| {
        // y = x + dropout(sublayer)
        if sublayer_edge.requires_grad() {
            let d_sublayer = match g.device() {
                Device::Cpu => cpu::dropped(&g, dropout, dtype),
                Device::Cuda => cuda::dropped(&g, dropout, dtype),
            };
            gradients.add(&sublayer_edge, d_sublayer);
        }
        gradients.add(&x_edge, g);
    })
}

fn normalized(
    op: &'static str,
    x: &Tensor,
    sublayer: Option<(&Tensor, Dropout)>,
    gamma: &Param,
    beta: &Param,
    options: NormOptions,
) -> Tensor {
    let width = x.width();
    assert!(x.dtype() == DType::F32, "{op}: x must be f32, not {x:?}");
    if let Some((sublayer, _)) = sublayer {
        check_pair(op, x, sublayer);
    }
    for (name, param) in [("gamma", gamma), ("beta", beta)] {
        assert!(param.shape() == [1, width], "{op}: x is {:?} but {name} is {:?}", x.shape(), param.shape());
    }
    let (dropout, sublayer) =
        (sublayer.map_or(Dropout::NONE, |(_, dropout)| dropout), sublayer.map(|(s, _)| s));

    let keep = if tape::is_recording() { Keep::ForBackward } else { Keep::Nothing };
    let inputs = Inputs { x, sublayer, dropout, gamma, beta };
    let Forward { y, narrow, x_hat, rstd } = match x.device() {
        Device::Cpu => cpu::forward(&inputs, options, keep),
        Device::Cuda => cuda::forward(&inputs, options, keep),
    };

    let Some(x_hat) = x_hat else { return Tensor::new(y).with_bf16(narrow) };
    let (x_edge, sublayer_edge) = (x.edge(), sublayer.map(|sublayer| (sublayer.edge(), sublayer.dtype())));
    let (gamma, beta, x_hat) = (gamma.clone(), beta.clone(), Arc::new(x_hat));
    let recompute = {
        let (gamma, beta, x_hat) = (gamma.clone(), beta.clone(), x_hat.clone());
        // y = γ x̂ + β
        move || match x_hat.device() {
            Device::Cpu => cpu::scaled(&x_hat, &gamma, &beta),
            Device::Cuda => cuda::scaled(&x_hat, &gamma, &beta),
        }
    };
    let y = Tensor::from_parameters(y, move |g, gradients: &mut Gradients| {
        let sublayer_dtype =
            sublayer_edge.as_ref().filter(|(edge, _)| edge.requires_grad()).map(|&(_, dtype)| dtype);
        let saved = SavedForBackward { x_hat, rstd, dropout };
        let (dx, d_sublayer) = match g.device() {
            Device::Cpu => cpu::backward(&saved, g, sublayer_dtype, &gamma, &beta),
            Device::Cuda => cuda::backward(&saved, g, sublayer_dtype, &gamma, &beta),
        };
        if let (Some((edge, _)), Some(d_sublayer)) = (sublayer_edge, d_sublayer) {
            gradients.add(&edge, d_sublayer);
        }
        gradients.add(&x_edge, dx);
    });
    match options.compute.dtype() {
        DType::F32 => y.with_recompute(recompute),
        DType::Bf16 => y.with_bf16(narrow),
    }
}

/// The inputs of the norm.
struct Inputs<'a> {
    x: &'a Tensor,
    sublayer: Option<&'a Tensor>,
    dropout: Dropout,
    gamma: &'a Param,
    beta: &'a Param,
}

/// Whether a backward pass will follow.
#[derive(Clone, Copy, PartialEq)]
enum Keep {
    ForBackward,
    Nothing,
}

/// The results of the forward pass.
struct Forward {
    y: Array,
    /// y in bf16, if the compute type is bf16.
    narrow: Option<Array>,
    /// x̂ in the compute type, if a backward pass will follow.
    x_hat: Option<Array>,
    rstd: Array,
}

/// The values that are saved for the backward pass.
struct SavedForBackward {
    x_hat: Arc<Array>,
    rstd: Array,
    dropout: Dropout,
}

fn check_pair(op: &str, x: &Tensor, sublayer: &Tensor) {
    assert!(x.dtype() == DType::F32, "{op}: x must be f32, not {x:?}");
    assert!(
        x.shape() == sublayer.shape(),
        "{op}: x is {:?} but the sublayer is {:?}",
        x.shape(),
        sublayer.shape()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::threads::set_thread_count;
    use crate::random::Stream;
    use crate::tensor;
    use crate::{Init, Params};

    const OPTIONS: NormOptions = NormOptions { epsilon: 0.0, compute: Compute::training(DType::F32) };

    fn norm_params(width: usize) -> (Param, Param) {
        let params = Params::new(1);
        let gamma = params.add("gamma", 1, width, Init::Constant(1.0));
        (gamma, params.add("beta", 1, width, Init::Constant(0.0)))
    }

    #[test]
    fn a_row_gets_mean_zero_and_biased_variance_one() {
        let (gamma, beta) = norm_params(4);
        let x = Tensor::from_f32(1, 4, &[1.0, 1.0, 3.0, 3.0]);
        assert_eq!(layer_norm(&x, &gamma, &beta, OPTIONS).to_vec(), [-1.0, -1.0, 1.0, 1.0]);
        gamma.set(&[2.0; 4]);
        beta.set(&[0.5; 4]);
        assert_eq!(layer_norm(&x, &gamma, &beta, OPTIONS).to_vec(), [-1.5, -1.5, 2.5, 2.5]);
    }

    #[test]
    fn a_large_mean_does_not_swallow_the_variance() {
        let (gamma, beta) = norm_params(2);
        let x = Tensor::from_f32(1, 2, &[10_000.0, 10_002.0]);
        assert_eq!(layer_norm(&x, &gamma, &beta, OPTIONS).to_vec(), [-1.0, 1.0]);
    }

    #[test]
    fn residual_drops_the_same_elements_forward_and_backward() {
        let (rows, width) = (70, 33);
        let x = Tensor::variable(Array::zeros(DType::F32, rows, width));
        let ones = Array::from_f32(rows, width, &vec![1.0; rows * width]);
        let sublayer = Tensor::variable(ones.clone());
        let dropout = Dropout::new(0.4, Stream::new(1, 2, 3));
        let y = residual(&x, &sublayer, dropout);
        assert!(y.to_vec().iter().enumerate().all(|(i, &y)| y == dropout.factor(i)));
        let gradients = tape::backward_from(&y, ones);
        assert_eq!(gradients.of(&sublayer).expect("gradient").f32(), y.to_vec());
        assert_eq!(gradients.of(&x).expect("gradient").f32(), vec![1.0; rows * width]);
    }

    #[test]
    fn a_recomputed_result_has_the_bits_of_the_forward_pass() {
        let (rows, width) = (70, 37);
        let stream = Stream::new(5, 0, 0);
        let draw =
            |from: u32, n: usize| -> Vec<f32> { (0..n as u32).map(|i| stream.normal(from + i)).collect() };
        let (gamma, beta) = norm_params(width);
        gamma.set(&draw(0, width));
        beta.set(&draw(1_000, width));
        let x = Tensor::from_f32(rows, width, &draw(2_000, rows * width));
        let y = layer_norm(&x, &gamma, &beta, OPTIONS);
        let kept = y.saved_as(DType::F32);
        assert!(matches!(kept, tensor::SavedInput::Recompute(_)));
        assert_eq!(kept.into_array().f32(), y.array().f32());
    }

    #[test]
    fn with_bf16_the_result_is_also_written_in_bf16() {
        let (gamma, beta) = norm_params(5);
        let x = Tensor::from_f32(2, 5, &[0.1, 0.7, -0.3, 0.9, 0.2, 1.0, 2.0, 3.0, 4.0, 6.0]);
        let y = layer_norm(
            &x,
            &gamma,
            &beta,
            NormOptions { epsilon: 1e-5, compute: Compute::training(DType::Bf16) },
        );
        assert_eq!(y.array_as(DType::Bf16).bf16(), y.array().to(DType::Bf16).bf16());
    }

    #[test]
    fn one_and_several_threads_give_the_same_bits() {
        let (rows, width) = (200, 33);
        let stream = Stream::new(3, 1, 4);
        let draw =
            |from: u32| -> Vec<f32> { (0..(rows * width) as u32).map(|i| stream.normal(from + i)).collect() };
        let run = |threads| {
            set_thread_count(threads);
            let (gamma, beta) = norm_params(width);
            let x = Tensor::variable(Array::from_f32(rows, width, &draw(0)));
            let sublayer = Tensor::variable(Array::from_f32(rows, width, &draw(10_000)));
            let dropout = Dropout::new(0.1, stream);
            let y = residual_norm(&x, &sublayer, &gamma, &beta, dropout, OPTIONS);
            let gradients = tape::backward_from(&y, Array::from_f32(rows, width, &draw(20_000)));
            let of = |tensor| gradients.of(tensor).expect("gradient").f32().to_vec();
            (y.to_vec(), of(&x), of(&sublayer), gamma.gradient(), beta.gradient())
        };
        assert!(run(1) == run(2));
    }
}
