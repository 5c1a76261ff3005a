//! Softmax, row by row.
//!
//! ```text
//! softmax(x)_j = e^{x_j − m} / Σ_k e^{x_k − m}            m = max_k x_k
//! ```
//!
//! Subtracting the maximum does not change the result and keeps every exponential at most 1: scores of any
//! size stay finite.
//!
//! Gradient, with `p = softmax(x)`: `dx_j = p_j (dy_j − Σ_k p_k dy_k)`.
//!
//! Shapes: x and y are `rows × classes`; x f32 or bf16, y f32. Saved for backward: x, which the tape holds
//! anyway; p is recomputed.

mod cpu;
pub(crate) mod cuda;

use crate::{Array, Device, Tensor};

/// `softmax(x)` per row, f32.
///
/// # Panics
/// If every score of a row is −∞: such a row has no distribution.
pub fn softmax(x: &Tensor) -> Tensor {
    let (edge, kept) = (x.edge(), x.detached());
    Tensor::from_inputs(forward(x.array()), &[x], move |mut g, gradients| {
        let p = forward(kept.array());
        match g.device() {
            Device::Cpu => cpu::backward(&p, &mut g),
            Device::Cuda => cuda::backward(&p, &mut g),
        }
        gradients.add(&edge, g.into_dtype(kept.dtype()));
    })
}

fn forward(x: &Array) -> Array {
    match x.device() {
        Device::Cpu => cpu::forward(x),
        Device::Cuda => cuda::forward(x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_scores_stay_finite_and_rows_add_up_to_one() {
        let x = Tensor::from_f32(
            3,
            3,
            &[1e38, -1e38, 1e38, -1e30, -1e30, -1e30, 500.0, 400.0, f32::NEG_INFINITY],
        );
        let y = softmax(&x).to_vec();
        assert_eq!(y[..3], [0.5, 0.0, 0.5]);
        assert!((y[3] - 1.0 / 3.0).abs() < 1e-7);
        assert_eq!(y[6..], [1.0, 0.0, 0.0]);
    }

    #[test]
    #[should_panic(expected = "softmax: a row has no score above −∞")]
    fn a_row_without_scores_is_an_error() {
        softmax(&Tensor::from_f32(1, 2, &[f32::NEG_INFINITY; 2]));
    }
}
