//! `Array`: pooled memory with a type and a shape. No gradients here; see [`crate::Tensor`] for those.

use std::fmt;

use half::bf16;

use crate::DType;
use crate::cpu::memory::Buffer;

/// A matrix of `rows × width` numbers, row after row, in memory that goes back to the pool on drop.
///
/// Every tensor of this crate is such a matrix: `rows` are tokens (or anything else there are many of) and
/// `width` is the number of features. A vector has one row.
pub struct Array {
    buffer: Buffer,
    dtype: DType,
    rows: usize,
    width: usize,
}

impl Array {
    /// An array whose contents are unspecified (but initialised) numbers, for kernels that write every element.
    pub fn scratch(dtype: DType, rows: usize, width: usize) -> Array {
        Array { buffer: Buffer::new(rows * width * dtype.bytes()), dtype, rows, width }
    }

    /// An array of zeros.
    pub fn zeros(dtype: DType, rows: usize, width: usize) -> Array {
        let mut array = Array::scratch(dtype, rows, width);
        array.buffer.bytes_mut().fill(0);
        array
    }

    /// A row of f32 zeros that lives as long as a model does: it takes the memory that it needs and no more.
    pub(crate) fn lasting_zeros(width: usize) -> Array {
        let mut array = Array { buffer: Buffer::lasting(width * 4), dtype: DType::F32, rows: 1, width };
        array.buffer.bytes_mut().fill(0);
        array
    }

    /// A copy of `values`, which must hold `rows × width` numbers.
    pub fn from_f32(rows: usize, width: usize, values: &[f32]) -> Array {
        assert_eq!(values.len(), rows * width, "Array::from_f32: {} values for {rows}×{width}", values.len());
        let mut array = Array::scratch(DType::F32, rows, width);
        array.f32_mut().copy_from_slice(values);
        array
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Numbers in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.rows * self.width
    }

    /// True when there is no element at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How the numbers are stored.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The same memory read as another shape with as many elements.
    pub fn reshaped(mut self, rows: usize, width: usize) -> Array {
        assert_eq!(self.len(), rows * width, "reshape: {}×{} to {rows}×{width}", self.rows, self.width);
        (self.rows, self.width) = (rows, width);
        self
    }

    /// The numbers of an f32 array.
    pub fn f32(&self) -> &[f32] {
        self.expect(DType::F32);
        bytemuck::cast_slice(&self.buffer.bytes()[..self.len() * 4])
    }

    /// The numbers of an f32 array, to write.
    pub fn f32_mut(&mut self) -> &mut [f32] {
        self.expect(DType::F32);
        let bytes = self.len() * 4;
        bytemuck::cast_slice_mut(&mut self.buffer.bytes_mut()[..bytes])
    }

    /// The numbers of a bf16 array.
    pub fn bf16(&self) -> &[bf16] {
        self.expect(DType::Bf16);
        bytemuck::cast_slice(&self.buffer.bytes()[..self.len() * 2])
    }

    /// The numbers of a bf16 array, to write.
    pub fn bf16_mut(&mut self) -> &mut [bf16] {
        self.expect(DType::Bf16);
        let bytes = self.len() * 2;
        bytemuck::cast_slice_mut(&mut self.buffer.bytes_mut()[..bytes])
    }

    /// A copy in the given type (rounded to nearest even on the way to bf16).
    pub fn to(&self, dtype: DType) -> Array {
        let mut out = Array::scratch(dtype, self.rows, self.width);
        crate::cpu::convert::convert(self, &mut out);
        out
    }

    /// This array in the given type: itself if it already is, else a copy.
    pub fn into_dtype(self, dtype: DType) -> Array {
        if self.dtype == dtype { self } else { self.to(dtype) }
    }

    fn expect(&self, dtype: DType) {
        assert_eq!(self.dtype, dtype, "an array of {} was read as {dtype}", self.dtype);
    }
}

impl Clone for Array {
    fn clone(&self) -> Array {
        self.to(self.dtype)
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({} {}×{})", self.dtype, self.rows, self.width)
    }
}
