//! Sums over all elements, f32, in one fixed order, and the repetition of a column.

use super::{cpu, cuda};
use crate::{DType, Device, Tensor};

/// The sum of all elements, `1 × 1`.
pub fn sum(x: &Tensor) -> Tensor {
    let y = match x.device() {
        Device::Cpu => cpu::sum(x.array()),
        Device::Cuda => cuda::sum(x.array()),
    };
    let (edge, dtype, shape) = (x.edge(), x.dtype(), x.shape());
    Tensor::from_inputs(y, &[x], move |g, gradients| {
        let dx = match g.device() {
            Device::Cpu => cpu::filled(shape, &g),
            Device::Cuda => cuda::filled(shape, &g),
        };
        gradients.add(&edge, dx.into_dtype(dtype));
    })
}

/// The single column of x, repeated `width` times.
///
/// # Panics
/// If x is not an f32 column.
pub fn repeat_column(x: &Tensor, width: usize) -> Tensor {
    let fits = x.width() == 1 && x.dtype() == DType::F32;
    assert!(fits, "repeat_column: {x:?} is not an f32 column");
    let y = match x.device() {
        Device::Cpu => cpu::repeated_column(x.array(), width),
        Device::Cuda => cuda::repeated_column(x.array(), width),
    };
    let edge = x.edge();
    Tensor::from_inputs(y, &[x], move |g, gradients| {
        let dx = match g.device() {
            Device::Cpu => cpu::row_sums(&g),
            Device::Cuda => cuda::row_sums(&g),
        };
        gradients.add(&edge, dx);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Array;

    #[test]
    fn sums_of_whole_numbers_are_exact() {
        let (rows, width) = (130, 257);
        let values: Vec<f32> = (0..rows * width).map(|i| (i % 5) as f32).collect();
        for dtype in [DType::F32, DType::Bf16] {
            let x = Tensor::new(Array::from_f32(rows, width, &values).to(dtype));
            let total: f32 = values.iter().sum();
            assert_eq!(sum(&x).item(), total);
        }
    }
}
