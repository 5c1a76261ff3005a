//! Pooling without parameters.
//!
//! ```text
//! mean   y = Σ_t v_t / n      dv_t = dy / n
//! max    y = max_t v_t        dv_t = dy where v_t is the first maximum of its column, else 0
//! ```
//!
//! Saved for backward: nothing for the mean; for the maximum the values, which exist anyway.

use super::check;
use super::cpu::plain as cpu;
use super::cuda::plain as cuda;
use crate::{Device, Ragged, Tensor};

/// The mean of the vectors of each sequence.
///
/// # Panics
/// If the rows are not the tokens of the sequences, or a sequence is empty.
pub fn mean_pool(values: &Tensor, sequences: &Ragged) -> Tensor {
    check("mean_pool", values, sequences);
    let pooled = match values.device() {
        Device::Cpu => cpu::mean(values.array(), sequences),
        Device::Cuda => cuda::mean(values.array(), sequences),
    };
    let (edge, sequences) = (values.edge(), sequences.clone());
    Tensor::from_inputs(pooled, &[values], move |g, gradients| {
        // y = Σ_t v_t / n
        let dv = match g.device() {
            Device::Cpu => cpu::mean_backward(&g, &sequences),
            Device::Cuda => cuda::mean_backward(&g, &sequences),
        };
        gradients.add(&edge, dv);
    })
}

/// The maximum of each column over the vectors of each sequence.
///
/// # Panics
/// As [`mean_pool`].
pub fn max_pool(values: &Tensor, sequences: &Ragged) -> Tensor {
    check("max_pool", values, sequences);
    let pooled = match values.device() {
        Device::Cpu => cpu::max(values.array(), sequences),
        Device::Cuda => cuda::max(values.array(), sequences),
    };
    let (edge, kept, sequences) = (values.edge(), values.detached(), sequences.clone());
    Tensor::from_inputs(pooled, &[values], move |g, gradients| {
        // y = max_t v_t
        let dv = match g.device() {
            Device::Cpu => cpu::max_backward(kept.array(), g, &sequences),
            Device::Cuda => cuda::max_backward(kept.array(), &g, &sequences),
        };
        gradients.add(&edge, dv);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::backward_from;
    use crate::{Array, DType};

    #[test]
    fn the_first_of_equal_maxima_takes_the_gradient() {
        for dtype in [DType::F32, DType::Bf16] {
            let x = Array::from_f32(4, 2, &[9.0, -9.0, 1.0, 4.0, 3.0, 4.0, 3.0, -2.0]).to(dtype);
            let x = Tensor::variable(x);
            let y = max_pool(&x, &Ragged::from_lengths([1, 3]));
            assert_eq!(y.to_vec(), [9.0, -9.0, 3.0, 4.0]);
            let gradients = backward_from(&y, Array::from_f32(2, 2, &[1.0, 2.0, 3.0, 4.0]));
            let dx = gradients.of(&x).expect("gradient").to(DType::F32);
            assert_eq!(dx.f32(), [1.0, 2.0, 0.0, 4.0, 3.0, 0.0, 0.0, 0.0]);
        }
    }

    #[test]
    fn a_mean_is_the_sum_over_the_count() {
        let x = Tensor::from_f32(4, 1, &[7.0, 1.0, 2.0, 6.0]);
        assert_eq!(mean_pool(&x, &Ragged::from_lengths([1, 3])).to_vec(), [7.0, 3.0]);
    }
}
