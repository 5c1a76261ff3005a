//! Sums over everything, over rows, over columns; all f32, all in one fixed order.

use crate::cpu::column_sums::add_column_sums;
use crate::cpu::number::{self, Numbers};
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType, Tensor};

/// Elements behind one partial sum of [`sum`].
const CHUNK: usize = 16 * 1024;

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
        let mut dx = Array::scratch(DType::F32, rows, g.width());
        for row in dx.f32_mut().chunks_exact_mut(g.width().max(1)) {
            row.copy_from_slice(g.f32());
        }
        gradients.add(&edge, dx.into_dtype(dtype));
    })
}

/// The sum of each row, `rows × 1`.
pub fn row_sums(x: &Tensor) -> Tensor {
    let [rows, width] = x.shape();
    let mut y = Array::zeros(DType::F32, rows, 1);
    for (row, y) in y.f32_mut().iter_mut().enumerate() {
        *y = sum_of(Numbers::of(x.array()).part(row * width..(row + 1) * width));
    }
    let (edge, dtype) = (x.edge(), x.dtype());
    Tensor::from_inputs(y, &[x], move |g, gradients| {
        let mut dx = Array::scratch(DType::F32, rows, width);
        for (row, &g) in dx.f32_mut().chunks_exact_mut(width.max(1)).zip(g.f32()) {
            row.fill(g);
        }
        gradients.add(&edge, dx.into_dtype(dtype));
    })
}

fn scaled_sum(x: &Tensor, factor: f32) -> Tensor {
    let (n, numbers) = (x.array().len(), Numbers::of(x.array()));
    let chunks = n.div_ceil(CHUNK);
    let mut partial = Array::scratch(DType::F32, 1, chunks);
    let shared = SharedMut::new(partial.f32_mut());
    parallel(chunks, |task| {
        // SAFETY: each task has its own element.
        unsafe { shared.slice(task..task + 1) }
            .fill(sum_of(numbers.part(task * CHUNK..((task + 1) * CHUNK).min(n))));
    });
    let total: f64 = partial.f32().iter().map(|&sum| f64::from(sum)).sum();
    let y = Array::from_f32(1, 1, &[(total * f64::from(factor)) as f32]);

    let (edge, dtype, [rows, width]) = (x.edge(), x.dtype(), x.shape());
    Tensor::from_inputs(y, &[x], move |g, gradients| {
        let mut dx = Array::scratch(DType::F32, rows, width);
        dx.f32_mut().fill(factor * g.f32()[0]);
        gradients.add(&edge, dx.into_dtype(dtype));
    })
}

/// `Σ_rows x`, f32.
pub(super) fn column_sums(x: &Array) -> Array {
    let mut sums = Array::zeros(DType::F32, 1, x.width());
    add_column_sums(Numbers::of(x), sums.f32_mut());
    sums
}

kernel! {
    fn sum_of(values: Numbers<'_>) -> f32 {
        match values {
            Numbers::F32(values) => number::sum(values, |x| x),
            Numbers::Bf16(values) => number::sum(values, |x| x),
        }
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
