//! Row-major f64 matrices.

use std::ops::Range;

/// A matrix of f64 with at least one row and one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    width: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// The matrix with these rows.
    ///
    /// # Panics
    /// If there are no elements, or rows differ in length.
    pub(crate) fn from_rows(rows: &[Vec<f64>]) -> Matrix {
        let width = rows.first().map_or(0, Vec::len);
        assert!(width > 0 && rows.iter().all(|row| row.len() == width), "Matrix: rows of one length");
        Matrix { width, values: rows.concat() }
    }

    /// The matrix whose element at (row, column) is `element(row, column)`.
    pub(super) fn from_fn(rows: usize, width: usize, element: impl Fn(usize, usize) -> f64) -> Matrix {
        let values = (0..rows * width).map(|i| element(i / width, i % width)).collect();
        Matrix { width, values }
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        self.values.len() / self.width
    }

    /// The number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.width..(row + 1) * self.width]
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks(self.width)
    }

    /// The largest finite absolute value.
    pub fn largest(&self) -> f64 {
        self.values.iter().map(|value| value.abs()).filter(|value| value.is_finite()).fold(0.0, f64::max)
    }

    /// The elements as f32, row-major.
    pub fn to_f32(&self) -> Vec<f32> {
        self.values.iter().map(|&value| value as f32).collect()
    }

    pub(super) fn matmul(&self, other: &Matrix) -> Matrix {
        Matrix::from_fn(self.height(), other.width, |i, j| {
            self.row(i).iter().enumerate().map(|(k, value)| value * other.row(k)[j]).sum()
        })
    }

    /// `self · otherᵀ`.
    pub(super) fn matmul_transposed(&self, other: &Matrix) -> Matrix {
        Matrix::from_fn(self.height(), other.height(), |i, j| dot(self.row(i), other.row(j)))
    }

    /// Adds a row, such as a bias, to every row.
    pub(super) fn add_row(self, row: Option<&[f64]>) -> Matrix {
        let Some(row) = row else { return self };
        Matrix::from_fn(self.height(), self.width, |i, j| self.row(i)[j] + row[j])
    }

    pub(super) fn scaled(&self, factor: f64) -> Matrix {
        Matrix::from_fn(self.height(), self.width, |i, j| self.row(i)[j] * factor)
    }

    pub(super) fn column_range(&self, range: Range<usize>) -> Matrix {
        Matrix::from_fn(self.height(), range.len(), |i, j| self.row(i)[range.start + j])
    }

    /// Concatenates matrices along the columns.
    pub(super) fn concat_columns(matrices: &[&Matrix]) -> Matrix {
        let rows: Vec<Vec<f64>> = (0..matrices[0].height())
            .map(|row| matrices.iter().flat_map(|matrix| matrix.row(row)).copied().collect())
            .collect();
        Matrix::from_rows(&rows)
    }

    /// The softmax of each row; −∞ becomes exactly 0. Each row must have a finite element.
    pub(super) fn softmax(&self) -> Matrix {
        let rows: Vec<Vec<f64>> = self
            .rows()
            .map(|row| {
                let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let exponentials: Vec<f64> = row.iter().map(|score| (score - max).exp()).collect();
                let sum: f64 = exponentials.iter().sum();
                exponentials.iter().map(|x| x / sum).collect()
            })
            .collect();
        Matrix::from_rows(&rows)
    }
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
