//! Matrices of f64, row after row.

use std::ops::Range;

/// A matrix of f64 with at least one row and one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    width: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// The matrix of these rows.
    ///
    /// # Panics
    /// If there is no number, or rows differ in length.
    pub(crate) fn from_rows(rows: &[Vec<f64>]) -> Matrix {
        let width = rows.first().map_or(0, Vec::len);
        assert!(width > 0 && rows.iter().all(|row| row.len() == width), "Matrix: rows of one length");
        Matrix { width, values: rows.concat() }
    }

    /// The matrix whose number at (row, column) is `number(row, column)`.
    pub(super) fn of(rows: usize, width: usize, number: impl Fn(usize, usize) -> f64) -> Matrix {
        let values = (0..rows * width).map(|i| number(i / width, i % width)).collect();
        Matrix { width, values }
    }

    /// How many rows it has.
    pub fn height(&self) -> usize {
        self.values.len() / self.width
    }

    /// How many columns it has.
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

    /// The largest absolute value that is finite.
    pub fn largest(&self) -> f64 {
        self.values.iter().map(|value| value.abs()).filter(|value| value.is_finite()).fold(0.0, f64::max)
    }

    /// Row after row, as f32.
    pub fn to_f32(&self) -> Vec<f32> {
        self.values.iter().map(|&value| value as f32).collect()
    }

    pub(super) fn times(&self, other: &Matrix) -> Matrix {
        Matrix::of(self.height(), other.width, |i, j| {
            self.row(i).iter().enumerate().map(|(k, value)| value * other.row(k)[j]).sum()
        })
    }

    pub(super) fn times_transposed(&self, other: &Matrix) -> Matrix {
        Matrix::of(self.height(), other.height(), |i, j| dot(self.row(i), other.row(j)))
    }

    pub(super) fn plus_row(self, row: Option<&[f64]>) -> Matrix {
        let Some(row) = row else { return self };
        Matrix::of(self.height(), self.width, |i, j| self.row(i)[j] + row[j])
    }

    pub(super) fn scaled(&self, factor: f64) -> Matrix {
        Matrix::of(self.height(), self.width, |i, j| self.row(i)[j] * factor)
    }

    pub(super) fn columns(&self, range: Range<usize>) -> Matrix {
        Matrix::of(self.height(), range.len(), |i, j| self.row(i)[range.start + j])
    }

    pub(super) fn beside(parts: &[&Matrix]) -> Matrix {
        let rows: Vec<Vec<f64>> = (0..parts[0].height())
            .map(|row| parts.iter().flat_map(|part| part.row(row)).copied().collect())
            .collect();
        Matrix::from_rows(&rows)
    }

    /// The softmax of each row, in which −∞ becomes exactly 0. Each row has a finite number.
    pub(super) fn softmax(&self) -> Matrix {
        let rows: Vec<Vec<f64>> = self
            .rows()
            .map(|row| {
                let highest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let powers: Vec<f64> = row.iter().map(|score| (score - highest).exp()).collect();
                let sum: f64 = powers.iter().sum();
                powers.iter().map(|power| power / sum).collect()
            })
            .collect();
        Matrix::from_rows(&rows)
    }
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
