//! Batch norm: every column over all rows of a batch (Ioffe and Szegedy, 2015).
//!
//! For each column, over T rows:
//!
//! ```text
//! μ = Σ_t x_t / T       σ² = Σ_t (x_t − μ)² / T       (the biased variance)
//! x̂ = (x − μ) / √(σ² + ε)
//! y = γ x̂ + β
//! ```
//!
//! Gradient, with `g = dy`:
//!
//! ```text
//! dβ = Σ_t g_t          dγ = Σ_t g_t x̂_t
//! dx = γ (g − dβ / T − x̂ dγ / T) / √(σ² + ε)
//! ```
//!
//! Shapes: x and y are `rows × d`, f32; γ, β, μ and σ² are `1 × d`. Saved for backward: x̂ and for each
//! column `1 / √(σ² + ε)`. Sums over rows are computed for every 128 rows and added in order. A row's result
//! depends on the other rows of its batch, except in [`batch_norm_with_statistics`], which takes μ and σ² as
//! inputs and has no gradient.

mod cpu;
pub(crate) mod cuda;

use super::Guard;
use crate::{Array, DType, Device, Param, Tensor};

/// The result of [`batch_norm`].
pub struct BatchNormOutput {
    /// The normalized rows.
    pub y: Tensor,
    /// μ, one for each column, without gradient.
    pub mean: Tensor,
    /// σ², one for each column, without gradient.
    pub variance: Tensor,
}

/// `y = γ (x − μ) / √(σ² + ε) + β` with the mean and the variance of each column of x.
///
/// # Panics
/// If γ or β is not one row as wide as x, x is not f32, or x has no rows.
pub fn batch_norm(x: &Tensor, gamma: &Param, beta: &Param, epsilon: f32) -> BatchNormOutput {
    check("batch_norm", x, &[("gamma", gamma), ("beta", beta)]);
    assert!(x.rows() > 0, "batch_norm: x is {:?}, which has no rows to average", x.shape());
    let Forward { y, x_hat, rstd, mean, variance } = match x.device() {
        Device::Cpu => cpu::forward(x.array(), gamma, beta, epsilon),
        Device::Cuda => cuda::forward(x.array(), gamma, beta, epsilon),
    };
    let (edge, gamma, beta) = (x.edge(), gamma.clone(), beta.clone());
    let y = Tensor::from_parameters(y, move |g, gradients| {
        // y = γ x̂ + β
        let dx = match g.device() {
            Device::Cpu => cpu::backward(&x_hat, &rstd, g, &gamma, &beta),
            Device::Cuda => cuda::backward(&x_hat, &rstd, g, &gamma, &beta),
        };
        gradients.add(&edge, dx);
    });
    BatchNormOutput { y, mean: Tensor::new(mean), variance: Tensor::new(variance) }
}

/// `y = γ (x − μ) / √(σ² + ε) + β` with given mean and variance, row by row; for inference.
///
/// # Panics
/// If a parameter is not one row as wide as x, or x is not f32.
pub fn batch_norm_with_statistics(
    x: &Tensor,
    [mean, variance]: [&Param; 2],
    [gamma, beta]: [&Param; 2],
    epsilon: f32,
) -> Tensor {
    let params = [("mean", mean), ("variance", variance), ("gamma", gamma), ("beta", beta)];
    check("batch_norm_with_statistics", x, &params);
    Tensor::new(match x.device() {
        Device::Cpu => cpu::with_statistics(x.array(), [mean, variance], [gamma, beta], epsilon),
        Device::Cuda => cuda::with_statistics(x.array(), [mean, variance], [gamma, beta], epsilon),
    })
}

/// `running += share (batch − running)` on the GPU, in the step whose update the guard has just decided on:
/// if the update was rejected, nothing changes. The bf16 copy of the parameters is not updated: no GEMM reads
/// a statistic.
///
/// # Panics
/// If the shapes differ, or the guard has not decided on a GPU.
pub fn update_running_statistic(running: &Param, batch: &Tensor, share: f32, guard: &Guard) {
    assert_eq!(running.shape(), batch.shape(), "update_running_statistic: {} and {batch:?}", running.name());
    cuda::update_running(running, batch.array(), share, guard.rejected_flag());
}

/// The results of the forward pass.
struct Forward {
    y: Array,
    /// x̂
    x_hat: Array,
    /// `1 / √(σ² + ε)`
    rstd: Array,
    mean: Array,
    variance: Array,
}

fn check(op: &str, x: &Tensor, params: &[(&str, &Param)]) {
    assert!(x.dtype() == DType::F32, "{op}: x must be f32, not {x:?}");
    for (name, param) in params {
        assert!(
            param.shape() == [1, x.width()],
            "{op}: x is {:?} but {name} is {:?}",
            x.shape(),
            param.shape()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::threads::set_thread_count;
    use crate::random::Stream;
    use crate::tape::backward_from;
    use crate::{Array, Init, Params};

    fn params(width: usize) -> [Param; 2] {
        let params = Params::new(1);
        let gamma = params.add("gamma", 1, width, Init::Constant(1.0));
        [gamma, params.add("beta", 1, width, Init::Constant(0.0))]
    }

    #[test]
    fn a_column_gets_mean_zero_and_biased_variance_one() {
        let [gamma, beta] = params(2);
        let x = Tensor::from_f32(4, 2, &[1.0, 10_000.0, 1.0, 10_002.0, 3.0, 10_000.0, 3.0, 10_002.0]);
        let found = batch_norm(&x, &gamma, &beta, 0.0);
        assert_eq!(found.y.to_vec(), [-1.0, -1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0]);
        assert_eq!((found.mean.to_vec(), found.variance.to_vec()), (vec![2.0, 10_001.0], vec![1.0, 1.0]));
    }

    #[test]
    fn given_statistics_are_used_row_by_row() {
        let params = Params::new(1);
        let [mean, variance, gamma, beta] =
            ["mean", "variance", "gamma", "beta"].map(|name| params.add(name, 1, 2, Init::Constant(0.0)));
        mean.set(&[1.0, -2.0]);
        variance.set(&[3.0, 0.0]);
        gamma.set(&[2.0, 1.0]);
        beta.set(&[0.5, 7.0]);
        let x = Tensor::from_f32(2, 2, &[5.0, -2.0, 1.0, 0.0]);
        let y = batch_norm_with_statistics(&x, [&mean, &variance], [&gamma, &beta], 1.0);
        assert_eq!(y.to_vec(), [4.5, 7.0, 0.5, 9.0]);
    }

    #[test]
    fn one_and_several_threads_give_the_same_bits() {
        let (rows, width) = (700, 33);
        let stream = Stream::new(3, 1, 4);
        let draw =
            |from: u32| -> Vec<f32> { (0..(rows * width) as u32).map(|i| stream.normal(from + i)).collect() };
        let run = |threads| {
            set_thread_count(threads);
            let [gamma, beta] = params(width);
            let x = Tensor::variable(Array::from_f32(rows, width, &draw(0)));
            let found = batch_norm(&x, &gamma, &beta, 1e-5);
            let gradients = backward_from(&found.y, Array::from_f32(rows, width, &draw(50_000)));
            let dx = gradients.of(&x).expect("gradient").f32().to_vec();
            (
                found.y.to_vec(),
                found.mean.to_vec(),
                found.variance.to_vec(),
                dx,
                gamma.gradient(),
                beta.gradient(),
            )
        };
        assert!(run(1) == run(2));
    }
}
