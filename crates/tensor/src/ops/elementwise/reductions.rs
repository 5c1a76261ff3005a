//! Sums over everything, over rows, over columns; all f32, all in one fixed order.

use crate::cpu::number::{self, Number, Numbers};
use crate::cpu::threads::{SharedMut, parallel};
use crate::{Array, DType, Tensor};

/// Elements behind one partial sum of [`sum`].
const CHUNK: usize = 16 * 1024;
/// Rows behind one partial sum of [`sum_rows`].
const ROWS: usize = 64;

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

/// `Σ_rows x`, f32: rows are added in order within each group of [`ROWS`], then the groups in order.
pub(super) fn column_sums(x: &Array) -> Array {
    let (rows, width, numbers) = (x.rows(), x.width(), Numbers::of(x));
    let groups = rows.div_ceil(ROWS);
    let mut partial = Array::zeros(DType::F32, groups, width);
    let shared = SharedMut::new(partial.f32_mut());
    parallel(groups, |task| {
        // SAFETY: each task has its own row.
        let sums = unsafe { shared.slice(task * width..(task + 1) * width) };
        add_rows(numbers.part(task * ROWS * width..((task + 1) * ROWS).min(rows) * width), sums);
    });
    let mut total = Array::zeros(DType::F32, 1, width);
    add_rows(Numbers::F32(partial.f32()), total.f32_mut());
    total
}

kernel! {
    fn sum_of(values: Numbers<'_>) -> f32 {
        match values {
            Numbers::F32(values) => number::sum(values, |x| x),
            Numbers::Bf16(values) => number::sum(values, |x| x),
        }
    }
}

kernel! {
    fn add_rows(rows: Numbers<'_>, sums: &mut [f32]) {
        match rows {
            Numbers::F32(rows) => add_each_row(rows, sums),
            Numbers::Bf16(rows) => add_each_row(rows, sums),
        }
    }
}

#[inline(always)]
fn add_each_row<T: Number>(rows: &[T], sums: &mut [f32]) {
    for row in rows.chunks_exact(sums.len().max(1)) {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += x.wide();
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
