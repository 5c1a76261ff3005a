//! A borrowed strided matrix, the input of packing and kernels.

use half::bf16;

use crate::cpu::number::Numbers;
use crate::{Array, DType};

/// The elements of a [`Matrix`].
#[derive(Clone, Copy)]
pub enum Elements<'a> {
    /// f32.
    F32(&'a [f32]),
    /// bf16.
    Bf16(&'a [bf16]),
}

/// `rows × columns` elements; element `(r, c)` is at `r · row_stride + c · column_stride`. One of the two
/// strides is 1.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    pub(crate) elements: Elements<'a>,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) row_stride: usize,
    pub(crate) column_stride: usize,
}

impl<'a> Matrix<'a> {
    /// A row-major matrix of f32.
    pub fn f32(values: &'a [f32], rows: usize, columns: usize) -> Matrix<'a> {
        assert_eq!(values.len(), rows * columns, "Matrix: {} values for {rows}×{columns}", values.len());
        Matrix { elements: Elements::F32(values), rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// A row-major matrix of bf16.
    pub fn bf16(values: &'a [bf16], rows: usize, columns: usize) -> Matrix<'a> {
        assert_eq!(values.len(), rows * columns, "Matrix: {} values for {rows}×{columns}", values.len());
        Matrix { elements: Elements::Bf16(values), rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// A whole array.
    pub fn of(array: &'a Array) -> Matrix<'a> {
        match array.dtype() {
            DType::F32 => Matrix::f32(array.f32(), array.rows(), array.width()),
            DType::Bf16 => Matrix::bf16(array.bf16(), array.rows(), array.width()),
        }
    }

    /// The rows `range` of this matrix, which must be row-major.
    pub fn rows(self, range: std::ops::Range<usize>) -> Matrix<'a> {
        assert_eq!(self.column_stride, 1, "Matrix::rows: of a transposed matrix");
        let part = range.start * self.row_stride..range.end * self.row_stride;
        let elements = match self.elements {
            Elements::F32(values) => Elements::F32(&values[part]),
            Elements::Bf16(values) => Elements::Bf16(&values[part]),
        };
        Matrix { elements, rows: range.len(), ..self }
    }

    /// The columns `range` of this matrix, which must be row-major.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn columns(self, range: std::ops::Range<usize>) -> Matrix<'a> {
        assert_eq!(self.column_stride, 1, "Matrix::columns: of a transposed matrix");
        let elements = match self.elements {
            Elements::F32(values) => Elements::F32(&values[range.start..]),
            Elements::Bf16(values) => Elements::Bf16(&values[range.start..]),
        };
        Matrix { elements, columns: range.len(), ..self }
    }

    /// The transpose, without a copy.
    pub fn transposed(self) -> Matrix<'a> {
        Matrix {
            elements: self.elements,
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }

    /// The elements in memory order.
    pub(crate) fn numbers(self) -> Numbers<'a> {
        match self.elements {
            Elements::F32(values) => Numbers::F32(values),
            Elements::Bf16(values) => Numbers::Bf16(values),
        }
    }

    pub(crate) fn dtype(&self) -> DType {
        match self.elements {
            Elements::F32(_) => DType::F32,
            Elements::Bf16(_) => DType::Bf16,
        }
    }
}
