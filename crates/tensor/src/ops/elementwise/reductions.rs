//! Sums over everything, over rows, over columns; all f32, all in one fixed order.

use super::{cpu, cuda};
use crate::{Array, DType, Device, Tensor};

/// The sum of all elements, `1 × 1`.
pub fn sum(x: &Tensor) -> Tensor {
    scaled_sum(x, 1.0)
}

/// The mean of all elements, `1 × 1`.
///
/// # Panics
/// If there are none.
pub fn mean(x: &Tensor) -> Tensor {
    assert!(!x.array().is_empty(), "mean: of no elements, {:?}", x.shape());
    scaled_sum(x, 1.0 / x.array().len() as f32)
}

/// The sum of all rows, `1 × width`.
pub fn sum_rows(x: &Tensor) -> Tensor {
    let (edge, dtype, rows) = (x.edge(), x.dtype(), x.rows());
    Tensor::from_inputs(column_sums(x.array()), &[x], move |g, gradients| {
        let dx = match g.device() {
            Device::Cpu => cpu::repeated_row(&g, rows),
            Device::Cuda => cuda::repeated_row(&g, rows),
        };
        gradients.add(&edge, dx.into_dtype(dtype));
    })
}

/// The one column of x, `width` times side by side.
///
/// # Panics
/// If x is not an f32 column.
pub fn repeat_column(x: &Tensor, width: usize) -> Tensor {
    let fits = x.width() == 1 && x.dtype() == DType::F32;
    assert!(fits, "repeat_column: {x:?} is no f32 column");
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

/// The sum of each row, `rows × 1`.
pub fn row_sums(x: &Tensor) -> Tensor {
    let y = match x.device() {
        Device::Cpu => cpu::row_sums(x.array()),
        Device::Cuda => cuda::row_sums(x.array()),
    };
    let (edge, dtype, width) = (x.edge(), x.dtype(), x.width());
    Tensor::from_inputs(y, &[x], move |g, gradients| {
        let dx = match g.device() {
            Device::Cpu => cpu::repeated_column(&g, width),
            Device::Cuda => cuda::repeated_column(&g, width),
        };
        gradients.add(&edge, dx.into_dtype(dtype));
    })
}

fn scaled_sum(x: &Tensor, factor: f32) -> Tensor {
    let y = match x.device() {
        Device::Cpu => cpu::sum(x.array(), factor),
        Device::Cuda => cuda::sum(x.array(), factor),
    };
    let (edge, dtype, shape) = (x.edge(), x.dtype(), x.shape());
    Tensor::from_inputs(y, &[x], move |g, gradients| {
        let dx = match g.device() {
            Device::Cpu => cpu::filled(shape, &g, factor),
            Device::Cuda => cuda::filled(shape, &g, factor),
        };
        gradients.add(&edge, dx.into_dtype(dtype));
    })
}

/// `Σ_rows x`, f32.
pub(super) fn column_sums(x: &Array) -> Array {
    match x.device() {
        Device::Cpu => cpu::column_sums(x),
        Device::Cuda => cuda::column_sums(x),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_whole_numbers_are_exact() {
        let (rows, width) = (130, 257);
        let values: Vec<f32> = (0..rows * width).map(|i| (i % 5) as f32).collect();
        for dtype in [DType::F32, DType::Bf16] {
            let x = Tensor::new(Array::from_f32(rows, width, &values).to(dtype));
            let total: f32 = values.iter().sum();
            assert_eq!(sum(&x).item(), total);
            assert!((mean(&x).item() - total / values.len() as f32).abs() < 1e-5);
            assert_eq!(sum_rows(&x).to_vec()[3], (0..rows).map(|r| values[r * width + 3]).sum::<f32>());
            assert_eq!(row_sums(&x).to_vec()[7], values[7 * width..8 * width].iter().sum::<f32>());
        }
    }
}
