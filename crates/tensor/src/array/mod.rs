//! `Array`: pooled memory with an element type and a shape. It has no gradients; see [`crate::Tensor`] for
//! those.

mod cpu;
pub(crate) mod cuda;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use half::bf16;

use crate::cpu::memory::Buffer;
use crate::cuda::{Buffer as CudaBuffer, Operand, Pointer};
use crate::{DType, Device};

/// A row-major `rows × width` matrix, in memory that returns to its pool on drop.
///
/// Every tensor of this crate is such a matrix: `rows` are tokens (or any other items) and `width` is the
/// number of features. A vector has one row.
///
/// Results are on the device of their inputs, and models on the device of their parameters: only data that
/// enters from outside is created on a named device, with [`Array::scratch_on`] and similar functions.
/// Without a name it is created in host memory.
pub struct Array {
    memory: Memory,
    dtype: DType,
    rows: usize,
    width: usize,
    /// Partial column sums that a GPU kernel computed while it wrote the elements.
    sums: Option<PartialColumnSums>,
}

/// The memory of one device.
enum Memory {
    /// The CPU's.
    Host(Buffer),
    /// The GPU's.
    Cuda(CudaBuffer),
}

/// How a backward pass writes a gradient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// Overwrite: the first write since the last update.
    Over,
    /// Accumulate.
    Add,
}

/// Partial column sums: some columns of another array, from this one on.
type PartialColumnSums = (Arc<Array>, usize);

impl Array {
    /// An array with unspecified (but initialised) contents, for kernels that write every element.
    pub fn scratch_on(device: Device, dtype: DType, rows: usize, width: usize) -> Array {
        let bytes = rows * width * dtype.bytes();
        let memory = match device {
            Device::Cpu => Memory::Host(Buffer::new(bytes)),
            Device::Cuda => Memory::Cuda(CudaBuffer::new(bytes)),
        };
        Array { memory, dtype, rows, width, sums: None }
    }

    /// An array of zeros.
    pub fn zeros_on(device: Device, dtype: DType, rows: usize, width: usize) -> Array {
        let mut array = Array::scratch_on(device, dtype, rows, width);
        array.clear();
        array
    }

    /// A row of f32 zeros that lives as long as a model: its allocation is not rounded up.
    pub(crate) fn permanent_zeros_on(device: Device, width: usize) -> Array {
        let memory = match device {
            Device::Cpu => Memory::Host(Buffer::permanent(width * 4)),
            Device::Cuda => Memory::Cuda(CudaBuffer::new(width * 4)),
        };
        let mut array = Array { memory, dtype: DType::F32, rows: 1, width, sums: None };
        array.clear();
        array
    }

    /// A row of f32 zeros in host memory whose pages are allocated only when they are written.
    pub(crate) fn lazy_zeros(width: usize) -> Array {
        let memory = Memory::Host(Buffer::lazy(width * 4));
        Array { memory, dtype: DType::F32, rows: 1, width, sums: None }
    }

    /// A copy of `values`, which must have `rows × width` elements.
    pub fn from_f32_on(device: Device, rows: usize, width: usize, values: &[f32]) -> Array {
        assert_eq!(values.len(), rows * width, "Array::from_f32: {} values for {rows}×{width}", values.len());
        let mut array = Array::scratch_on(device, DType::F32, rows, width);
        array.copy_from(values);
        array
    }

    /// [`Array::scratch_on`] the CPU.
    pub fn scratch(dtype: DType, rows: usize, width: usize) -> Array {
        Array::scratch_on(Device::Cpu, dtype, rows, width)
    }

    /// [`Array::zeros_on`] the CPU.
    pub fn zeros(dtype: DType, rows: usize, width: usize) -> Array {
        Array::zeros_on(Device::Cpu, dtype, rows, width)
    }

    /// [`Array::from_f32_on`] the CPU.
    pub fn from_f32(rows: usize, width: usize, values: &[f32]) -> Array {
        Array::from_f32_on(Device::Cpu, rows, width, values)
    }

    /// The device that holds the elements.
    #[inline]
    pub fn device(&self) -> Device {
        match self.memory {
            Memory::Host(_) => Device::Cpu,
            Memory::Cuda(_) => Device::Cuda,
        }
    }

    /// Number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Elements in a row.
    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.rows * self.width
    }

    /// Whether there are no elements.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The same memory with another shape and the same number of elements.
    pub fn reshaped(mut self, rows: usize, width: usize) -> Array {
        assert_eq!(self.len(), rows * width, "reshape: {}×{} to {rows}×{width}", self.rows, self.width);
        (self.rows, self.width) = (rows, width);
        self
    }

    /// The elements of an f32 array in host memory.
    #[inline]
    pub fn f32(&self) -> &[f32] {
        self.expect(DType::F32);
        bytemuck::cast_slice(&self.host().bytes()[..self.len() * 4])
    }

    /// The elements of an f32 array in host memory, mutable.
    #[inline]
    pub fn f32_mut(&mut self) -> &mut [f32] {
        self.expect(DType::F32);
        let bytes = self.len() * 4;
        bytemuck::cast_slice_mut(&mut self.host_mut().bytes_mut()[..bytes])
    }

    /// The elements of a bf16 array in host memory.
    #[inline]
    pub fn bf16(&self) -> &[bf16] {
        self.expect(DType::Bf16);
        bytemuck::cast_slice(&self.host().bytes()[..self.len() * 2])
    }

    /// The elements of a bf16 array in host memory, mutable.
    #[inline]
    pub fn bf16_mut(&mut self) -> &mut [bf16] {
        self.expect(DType::Bf16);
        let bytes = self.len() * 2;
        bytemuck::cast_slice_mut(&mut self.host_mut().bytes_mut()[..bytes])
    }

    /// The address in GPU memory.
    #[inline]
    pub(crate) fn pointer(&self) -> Pointer {
        match &self.memory {
            Memory::Host(_) => panic!("{self:?} is in the host's memory, not on the GPU"),
            Memory::Cuda(buffer) => buffer.pointer(),
        }
    }

    /// Partial column sums, if the kernel that wrote the array computed them.
    pub(crate) fn partial_column_sums(&self) -> Option<PartialColumnSums> {
        self.sums.clone()
    }

    /// Attaches partial column sums: those in `partial` from column `column` on.
    pub(crate) fn set_partial_column_sums(&mut self, partial: Arc<Array>, column: usize) {
        self.sums = Some((partial, column));
    }

    /// Drops the partial column sums, because the elements are about to change.
    pub(crate) fn clear_partial_column_sums(&mut self) {
        self.sums = None;
    }

    /// This matrix as an operand of products on the GPU.
    pub(crate) fn operand(&self) -> Operand {
        let (rows, width) = (self.rows, self.width);
        let (pointer, dtype) = (self.pointer(), self.dtype);
        Operand { pointer, dtype, rows, width, stride: width, transposed: false }
    }

    /// A copy of the elements in host memory, in f32. On a GPU this waits for all submitted work.
    pub fn to_vec(&self) -> Vec<f32> {
        self.part_to_vec(0..self.len())
    }

    /// As [`Array::to_vec`] for a range of the elements in row-major order.
    pub fn part_to_vec(&self, range: Range<usize>) -> Vec<f32> {
        match (&self.memory, self.dtype) {
            (Memory::Host(_), DType::F32) => self.f32()[range].to_vec(),
            (Memory::Host(_), DType::Bf16) => self.bf16()[range].iter().map(|x| x.to_f32()).collect(),
            (Memory::Cuda(buffer), DType::F32) => {
                let mut values = vec![0.0_f32; range.len()];
                buffer.read(range.start * 4, bytemuck::cast_slice_mut(&mut values));
                values
            }
            (Memory::Cuda(buffer), DType::Bf16) => {
                let mut values = vec![bf16::ZERO; range.len()];
                buffer.read(range.start * 2, bytemuck::cast_slice_mut(&mut values));
                values.into_iter().map(bf16::to_f32).collect()
            }
        }
    }

    /// Overwrites an f32 array with `values` of the same length.
    pub fn copy_from(&mut self, values: &[f32]) {
        let len = self.len();
        assert_eq!(values.len(), len, "Array::copy_from: {} values for {self:?}", values.len());
        self.copy_part_from(0, values);
    }

    /// As [`Array::copy_from`] for some of the elements, from index `start` on.
    pub(crate) fn copy_part_from(&mut self, start: usize, values: &[f32]) {
        self.expect(DType::F32);
        match &mut self.memory {
            Memory::Host(_) => self.f32_mut()[start..start + values.len()].copy_from_slice(values),
            Memory::Cuda(buffer) => buffer.write_at(start * 4, bytemuck::cast_slice(values)),
        }
    }

    /// A copy in the memory of `device`.
    pub fn to_device(&self, device: Device) -> Array {
        if device == self.device() {
            return self.clone();
        }
        let wide = Array::from_f32_on(device, self.rows, self.width, &self.to_vec());
        wide.into_dtype(self.dtype)
    }

    /// A copy in the given type (rounded to nearest even on the way to bf16).
    pub fn to(&self, dtype: DType) -> Array {
        let mut out = Array::scratch_on(self.device(), dtype, self.rows, self.width);
        match self.device() {
            Device::Cpu => cpu::convert(self, &mut out),
            Device::Cuda => cuda::convert(self, &mut out),
        }
        out
    }

    /// Adds an array of the same shape, elementwise, in this one's type.
    pub(crate) fn add(&mut self, other: &Array) {
        assert_eq!((self.rows(), self.width()), (other.rows(), other.width()), "add: {self:?} and {other:?}");
        match self.device() {
            Device::Cpu => cpu::add(self, other),
            Device::Cuda => cuda::add(self, other),
        }
    }

    /// This array in the given type: itself if it already has the type, else a copy.
    pub fn into_dtype(self, dtype: DType) -> Array {
        if self.dtype == dtype { self } else { self.to(dtype) }
    }

    fn clear(&mut self) {
        match &mut self.memory {
            Memory::Host(buffer) => buffer.bytes_mut().fill(0),
            Memory::Cuda(buffer) => buffer.clear(),
        }
    }

    /// The host buffer; panics for an array on the GPU, which must be copied ([`Array::to_vec`]).
    #[inline]
    fn host(&self) -> &Buffer {
        match &self.memory {
            Memory::Host(buffer) => buffer,
            Memory::Cuda(_) => panic!("{self:?} is on the GPU: copy it with to_vec"),
        }
    }

    #[inline]
    fn host_mut(&mut self) -> &mut Buffer {
        match &mut self.memory {
            Memory::Host(buffer) => buffer,
            Memory::Cuda(_) => panic!("an array on the GPU was written as if it were in the host's memory"),
        }
    }

    #[inline]
    fn expect(&self, dtype: DType) {
        assert!(self.dtype == dtype, "an array of {} was read as {dtype}", self.dtype);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addition_rounds_once_for_every_pair_of_types() {
        // More than one task.
        let n = cpu::ADDED + 7;
        let values: Vec<f32> = (0..n).map(|i| (i % 97) as f32 * 0.37 - 11.0).collect();
        for a in [DType::F32, DType::Bf16] {
            for b in [DType::F32, DType::Bf16] {
                let mut sum = Array::from_f32(1, n, &values).to(a);
                let other = Array::from_f32(1, n, &values).to(b);
                let (wide_sum, wide_other) = (sum.to(DType::F32), other.to(DType::F32));
                sum.add(&other);
                let expected: Vec<f32> =
                    wide_sum.f32().iter().zip(wide_other.f32()).map(|(x, y)| x + y).collect();
                let expected = Array::from_f32(1, n, &expected).to(a).to(DType::F32);
                assert_eq!(sum.to(DType::F32).f32(), expected.f32(), "{a} += {b}");
            }
        }
    }
}
